"""Read the options of `parlour init`: channels, references to their tokens, and the model.

A secret itself is not taken from the command line, which every user of the machine can read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gateway.cli.init.plan import GivenSecret, ModelPlan
from gateway.cli.init.platforms import WEB, asked_secrets, channel_names
from gateway.config import SecretRef
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.frozen import dataclass

_TOKEN = re.compile(r"(?:([a-z][a-z0-9-]{0,31})(?:\.([a-z_]{1,40}))?=)?((?:env|file):.+)", re.DOTALL)
_TOKEN_FIX = "write for example --token telegram=file:secrets/telegram-token"  # noqa: S105 - an example


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the command line says; None for what it does not say."""

    channels: tuple[str, ...] | None
    secrets: Mapping[str, GivenSecret]
    """The channels' secrets, by the setting's path."""
    model: ModelPlan | None

    @classmethod
    def of(
        cls,
        *,
        channels: Sequence[str],
        tokens: Sequence[str],
        model: str | None,
        api_key: str | None,
        api_base: str | None,
    ) -> Given:
        """Raises ConfigurationError that names the option and does not repeat a token."""
        chosen = tuple(dict.fromkeys(channels)) if channels else None
        for name in chosen or ():
            checked_name(name)
        secrets = [_secret(number, text, chosen or ()) for number, text in enumerate(tokens, start=1)]
        if model is None and (api_key is not None or api_base is not None):
            raise ConfigurationError("--api-key and --api-base need --model: write the model's LiteLLM name")
        key = None if api_key is None else referenced("llm.api_key", api_key, "--api-key")
        return cls(
            channels=chosen,
            secrets={secret.path: secret for secret in secrets},
            model=None if model is None else ModelPlan(model=model, api_key=key, api_base=api_base),
        )


def checked_name(name: str) -> str:
    """`name` if there is such a channel. Raises ConfigurationError that lists them."""
    if name not in channel_names():
        raise ConfigurationError(f"There is no channel {name!r}; there are {', '.join(channel_names())}")
    return name


def referenced(path: str, text: str, option: str) -> GivenSecret:
    """A secret by its reference. Raises ConfigurationError, without repeating `text`, for anything else."""
    try:
        return GivenSecret(path=path, reference=str(SecretRef.parse(text)))
    except ValueError as error:
        raise ConfigurationError(
            f'{option} {error}; write "env:NAME" or "file:PATH": the secret itself does not belong there'
        ) from None


def _secret(number: int, text: str, chosen: Sequence[str]) -> GivenSecret:
    option = f"--token number {number}"
    found = _TOKEN.fullmatch(text)
    if found is None:
        raise ConfigurationError(f"{option} is no reference to a token; {_TOKEN_FIX}")
    posting = [name for name in chosen if name != WEB]
    channel = found[1] or (posting[0] if len(posting) == 1 else "")
    if not channel:
        raise ConfigurationError(f"{option} does not say which channel it is for; {_TOKEN_FIX}")
    if checked_name(channel) not in chosen:
        raise ConfigurationError(f"{option} is for {channel}, which is not chosen: add --channel {channel}")
    keys = [] if channel == WEB else list(asked_secrets(channel))
    key = found[2] or (keys[0] if len(keys) == 1 else "")
    if key not in keys:
        names = " or ".join(f"{channel}.{one}=" for one in keys) or "no token"
        raise ConfigurationError(f"{option}: {channel} takes {names}")
    return referenced(f"channels.{channel}.{key}", found[3], option)
