"""Test what was given to `parlour init` before anything is written: tokens at their platforms, the model by
one call.

A typed secret reaches the settings as a variable of a copied environment, so that no file is needed for it.
What talks to platforms and models is imported with the first test: the questions come half a second earlier.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from gateway.cli.findings import Finding
from gateway.cli.init.plan import LOCAL, ChannelPlan, GivenSecret, ModelPlan
from gateway.config import ConfigurationProblems, Secrets, Settings, load
from gateway.config.sources import PREFIX
from pipeline.domain.clock import Clock
from pipeline.redaction.redactor import Redactor

_MODEL_TIMEOUT_S = 30.0
_WORDS_CHARS = 1_000
_OPTION = re.compile(r" \((?:referred to )?in the option --set\)")
_BOT_IS = "accepted; the bot is "


class PlatformChecks:
    """Tests against the platforms. `folder` is that of the future parlour.toml."""

    def __init__(self, folder: Path, environ: Mapping[str, str], clock: Clock) -> None:
        self._folder = folder
        self._environ = environ
        self._clock = clock

    async def of(self, plan: ChannelPlan | ModelPlan) -> tuple[Finding, ...]:
        """What the platform says about the tokens and the bot's permissions, or whether the model answers one
        short request. The embedded model is not tested."""
        if isinstance(plan, ChannelPlan):
            return await self._channel(plan)
        return () if plan.model == LOCAL else await self._model(plan)

    async def _channel(self, channel: ChannelPlan) -> tuple[Finding, ...]:
        from gateway.cli.channel_checks import channel_findings

        values = [
            f"channels.{channel.name}.{key}={json.dumps(value)}" for key, value in channel.values.items()
        ]
        try:
            settings = self._settings(f"channels.{channel.name}", channel.secrets, values)
        except ConfigurationProblems as error:
            return _as_findings(channel.name, error)
        found = [one async for one in channel_findings(settings, self._clock) if _is_about(one, channel.name)]
        return tuple(_safe(found, settings))

    async def _model(self, model: ModelPlan) -> tuple[Finding, ...]:
        from gateway.app.llm import ModelClients
        from gateway.cli.model_check import model_finding

        given = [f"llm.model={json.dumps(model.model)}"]
        if model.api_base is not None:
            given.append(f"llm.api_base={json.dumps(model.api_base)}")
        secrets = () if model.api_key is None else (model.api_key,)
        try:
            settings = self._settings("llm", secrets, given)
            client = ModelClients(settings, self._clock).main(settings)
        except ConfigurationProblems as error:
            return _as_findings("model", error)
        found = await model_finding(
            "model", model.model, client, settings, self._clock, timeout_s=_MODEL_TIMEOUT_S
        )
        return tuple(_safe([found], settings))

    def _settings(self, section: str, secrets: Iterable[GivenSecret], overrides: Iterable[str]) -> Settings:
        """The defaults, the environment's settings of `section`, and what was given: a mistake in another
        section does not matter here. Raises ConfigurationProblems."""
        own = f"{PREFIX}{section.replace('.', '__')}__".upper()
        environ = {
            name: value
            for name, value in self._environ.items()
            if name.upper().startswith(own) or not name.startswith(PREFIX)
        }
        given = list(overrides)
        for number, secret in enumerate(secrets):
            reference = secret.reference
            if secret.value is not None:
                reference = f"env:PARLOUR_INIT_SECRET_{number}"
                environ[reference.removeprefix("env:")] = secret.value
            elif reference.startswith("file:"):
                # As in parlour.toml: a relative path starts at its folder.
                reference = f"file:{self._folder / reference.removeprefix('file:')}"
            given.append(f"{secret.path}={json.dumps(reference)}")
        return load(Path(os.devnull), environ, given)


def bot_name(findings: Iterable[Finding]) -> str:
    """The bot's name as the platform said it; empty if it did not."""
    words = (one.words for one in findings if one.good and one.words.startswith(_BOT_IS))
    return next((text.removeprefix(_BOT_IS) for text in words), "")


def _is_about(finding: Finding, channel: str) -> bool:
    return finding.name in (f"{channel} credentials", f"{channel} permissions") or (
        finding.name == channel and not finding.good and finding.words.startswith("is left out")
    )


def _as_findings(name: str, error: ConfigurationProblems) -> tuple[Finding, ...]:
    # The options that the settings see are not the person's.
    words = (_OPTION.sub("", str(problem)) for problem in error.problems)
    return tuple(Finding(name=name, good=False, words=text) for text in words)


def _safe(findings: Iterable[Finding], settings: Settings) -> Iterator[Finding]:
    """The findings without the secrets: a provider's answer may repeat its key."""
    redactor = Redactor(Secrets(settings.secret_refs().values()).known_values)
    return (replace(one, words=redactor.line(one.words, _WORDS_CHARS)) for one in findings)
