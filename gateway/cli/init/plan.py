"""What `parlour init` will write: the channels, the model and their secrets, as the text of parlour.toml.

Not here: asking for it (`questions`) and writing it (`files`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path

from gateway.config.catalog import toml_value
from pipeline.domain.frozen import dataclass

SECRETS_FOLDER = "secrets"
LOCAL = "local"
"""The embedded model, as llm.model names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSecret:
    """A secret: a reference to where it is, or its value, which goes into a file."""

    path: str
    """Of the setting, such as `channels.telegram.token`."""
    reference: str
    """`env:NAME` or `file:PATH`, as parlour.toml names it."""
    value: str | None = field(default=None, repr=False)
    """What was typed; None if the secret is at the reference already."""

    @property
    def key(self) -> str:
        return self.path.rpartition(".")[2]

    @classmethod
    def typed(cls, path: str, value: str) -> GivenSecret:
        """A secret that was typed; its file is named after the setting."""
        return cls(path=path, reference=f"file:{secret_file(path)}", value=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPlan:
    """One channel on which other people write."""

    name: str
    secrets: tuple[GivenSecret, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    """Its other settings, by key: those without which a plug-in's channel stays off."""
    bot: str = ""
    """The bot's name, if the platform said it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan:
    """The language model."""

    model: str = LOCAL
    api_key: GivenSecret | None = None
    api_base: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that is written."""

    file: Path
    web: bool
    channels: tuple[ChannelPlan, ...]
    model: ModelPlan

    def secrets(self) -> Iterator[GivenSecret]:
        """Every secret, in the order of the file."""
        if self.model.api_key is not None:
            yield self.model.api_key
        for channel in self.channels:
            yield from channel.secrets


def secret_file(path: str) -> str:
    """The file of a setting's secret, relative to the folder of parlour.toml: secrets/telegram-token."""
    parts = path.removeprefix("channels.").replace("_", "-").split(".")
    return f"{SECRETS_FOLDER}/{'-'.join(parts)}"


def toml_text(plan: Plan) -> str:
    """The text of parlour.toml. It holds no secret, only where each is."""
    tables = [_HEAD, _model(plan.model), _web(enabled=plan.web), *(_channel(one) for one in plan.channels)]
    return "\n".join(tables)


_HEAD = """\
# Parlour's settings, written by `parlour init`. Start with `parlour serve` in this folder.
# Every other setting has its default: `parlour check-config` lists them all with their values.
"""

_ACCESS = """\
# Who may write to the bot. pairing: no one but those whom you admit. A stranger who writes in private is
# shown a code, and `parlour pair CODE` admits them. list: those in allow. open: everybody, with daily limits.
access = "pairing"
# When it answers in rooms with several people: addressed, all or never.
rooms = "addressed"
"""


def _model(model: ModelPlan) -> str:
    lines = ["[llm]"]
    if model.model == LOCAL:
        lines.append("# The embedded model: on this machine, without a key. `parlour models get` fetches it.")
    else:
        lines.append('# By its LiteLLM name. "local" is the embedded model, which needs no key.')
    lines.append(f"model = {toml_value(model.model)}")
    if model.api_base is not None:
        lines.append(f"api_base = {toml_value(model.api_base)}")
    if model.api_key is not None:
        lines += [
            "# Where the key is, never the key itself.",
            f"api_key = {toml_value(model.api_key.reference)}",
        ]
    return "\n".join([*lines, ""])


def _web(*, enabled: bool) -> str:
    words = "The web page, on this machine alone: `parlour serve` prints its link."
    return f"# {words}\n[channels.web]\nenabled = {toml_value(enabled)}\n"


def _channel(channel: ChannelPlan) -> str:
    lines = [f"[channels.{channel.name}]"]
    if channel.secrets:
        lines.append("# Where each token is, never the token itself.")
    lines += [f"{secret.key} = {toml_value(secret.reference)}" for secret in channel.secrets]
    lines += [f"{key} = {toml_value(value)}" for key, value in channel.values.items()]
    return "\n".join([*lines, _ACCESS])
