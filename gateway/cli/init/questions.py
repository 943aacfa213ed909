"""Ask for what the command line did not say: channels, tokens and the model; each is tested at once.

Not here: what is asked about each platform (`platforms`) and the tests (`checks`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from gateway.cli.findings import Finding
from gateway.cli.init.checks import PlatformChecks, bot_name
from gateway.cli.init.files import copy_name
from gateway.cli.init.given import Given, checked_name, referenced
from gateway.cli.init.plan import LOCAL, ChannelPlan, GivenSecret, ModelPlan, secret_file
from gateway.cli.init.platforms import (
    WEB,
    asked_secrets,
    asked_values,
    channel_names,
    is_required,
    where_from,
)
from gateway.cli.init.terminal import Terminal, confirmed
from pipeline.domain.errors import ConfigurationError

_HIDDEN = "not shown; or env:NAME, file:PATH"


class Questions:
    """Questions in a terminal. `checks` is None if nothing is to be tested."""

    def __init__(self, terminal: Terminal, given: Given, checks: PlatformChecks | None, folder: Path) -> None:
        self._terminal = terminal
        self._given = given
        self._checks = checks
        self._folder = folder

    def channels(self) -> tuple[str, ...]:
        """The names of the channels."""
        if self._given.channels is not None:
            return self._given.channels
        names = channel_names()
        say = self._terminal.say
        say("Which channels? The terminal (`parlour chat`) is always there.")
        for number, name in enumerate(names, start=1):
            say(f"  {number}  {name}{' - the page on this machine' if name == WEB else ''}")
        while True:
            typed = self._terminal.ask("Numbers or names with spaces between them [web]: ").lower() or WEB
            words = typed.replace(",", " ").split()
            try:
                return tuple(dict.fromkeys(_numbered(word, names) for word in words))
            except ConfigurationError as error:
                say(f"  {error}")

    def channel(self, name: str) -> ChannelPlan | None:
        """The channel with its tokens, tested; None if it is left out."""
        say = self._terminal.say
        say(f"\n{name.capitalize()}")
        try:
            wanted, values = asked_secrets(name), asked_values(name)
        except ConfigurationError as error:
            say(f"  {error}. It is left out.")
            return None
        given = {
            path: secret
            for path, secret in self._given.secrets.items()
            if path.startswith(f"channels.{name}.")
        }
        if len(given) < len(wanted):
            for number, step in enumerate(where_from(name), start=1):
                say(f"  {number}. {step}")
        while True:
            plan = self._asked(name, wanted, values, given)
            findings = self._tested(plan)
            plan = replace(plan, bot=bot_name(findings))
            match self._verdict(findings, f"leave {name} out"):
                case "keep":
                    return plan
                case "leave":
                    return None
            given = {}

    def model(self) -> ModelPlan:
        """The model, tested if it is a hosted one."""
        say = self._terminal.say
        chosen = self._given.model
        if chosen is None:
            say("\nWhich model answers?")
            say("  Enter for the embedded one: small, on this machine, without a key. Or a LiteLLM name,")
            say("  such as openai/gpt-5-mini, anthropic/claude-sonnet-4-5 or ollama_chat/llama3")
        while True:
            plan = chosen or self._asked_model()
            if plan.model == LOCAL:
                return plan
            findings = self._tested(plan)
            match self._verdict(findings, "take the embedded model"):
                case "keep":
                    return plan
                case "leave":
                    return ModelPlan()
            chosen = None

    def _asked(
        self, name: str, wanted: Iterable[str], values: Iterable[str], given: Mapping[str, GivenSecret]
    ) -> ChannelPlan:
        words = asked_secrets(name)
        plain = {key: self._required(f"  {key}: ") for key in values}
        secrets = []
        for key in wanted:
            path = f"channels.{name}.{key}"
            secret = given.get(path) or self._secret(path, words[key], required=is_required(name, key))
            if secret is not None:
                secrets.append(secret)
        return ChannelPlan(name=name, secrets=tuple(secrets), values=plain)

    def _asked_model(self) -> ModelPlan:
        model = self._terminal.ask("  Model [local]: ") or LOCAL
        if model == LOCAL:
            return ModelPlan()
        key = self._secret("llm.api_key", "The provider's key; Enter if it needs none", required=False)
        base = self._terminal.ask("  Address of its API [the provider's own]: ") or None
        return ModelPlan(model=model, api_key=key, api_base=base)

    def _required(self, question: str) -> str:
        while not (typed := self._terminal.ask(question)):
            pass
        return typed

    def _secret(self, path: str, words: str, *, required: bool) -> GivenSecret | None:
        """A secret that is typed, or a reference to one. Enter takes the file that is there already."""
        file = self._folder / secret_file(path)
        there = file.is_file()
        hint = f"; Enter takes the one in {secret_file(path)}" if there else ""
        if there and not required:
            hint += ", - takes none"
        while True:
            typed = self._terminal.ask_hidden(f"  {words} ({_HIDDEN}{hint}): ")
            if not typed and there:
                return referenced(path, f"file:{secret_file(path)}", path)
            if typed in ("", "-") and not required:
                return None
            if typed.startswith(("env:", "file:")):
                try:
                    return referenced(path, typed, path)
                except ConfigurationError as error:
                    self._terminal.say(f"  {error}")
                    continue
            if typed and (not there or self._may_replace(file)):
                return GivenSecret.typed(path, typed)

    def _may_replace(self, file: Path) -> bool:
        return confirmed(
            self._terminal, f"  Replace {file.name}? The present one is kept as {copy_name(file).name}."
        )

    def _tested(self, plan: ChannelPlan | ModelPlan) -> tuple[Finding, ...]:
        if self._checks is None:
            return ()
        self._terminal.say("  testing it …")
        findings = asyncio.run(self._checks.of(plan))
        for finding in findings:
            self._terminal.say(shown(finding))
        return findings

    def _verdict(self, findings: Iterable[Finding], leave: str) -> str:
        """`keep`, `leave` or `again`, as the person says where a test failed."""
        failed = failures(findings)
        while failed:
            typed = self._terminal.ask(
                f"  Enter to type it again, k to keep it as it is, l to {leave}: "
            ).lower()
            if typed in ("", "k", "l"):
                return {"": "again", "k": "keep", "l": "leave"}[typed]
        return "keep"


def failures(findings: Iterable[Finding]) -> list[Finding]:
    """The findings with which the bot cannot work at all: a missing permission is no such one."""
    return [one for one in findings if not one.good and not one.name.endswith(" permissions")]


def shown(finding: Finding) -> str:
    """The finding as a line for the terminal."""
    return f"  {'ok ' if finding.good else 'BAD'}  {finding.name}: {finding.words}"


def _numbered(word: str, names: tuple[str, ...]) -> str:
    if word.isdecimal() and 1 <= int(word) <= len(names):
        return names[int(word) - 1]
    return checked_name(word)
