"""The settings of the crisis gate: [safety]."""

from __future__ import annotations

from typing import Literal

from gateway.config.section import PathSetting, Section, setting


class SafetySettings(Section):
    """[safety]: what happens when a person may be in danger."""

    gate: Literal["on", "off"] = setting(
        "on",
        "Whether the crisis gate judges what people write to the default agent: words that tell of danger "
        "get a fixed response with numbers of help in place of the agent (docs/guides/safety.md). off "
        "exempts the agent. Further agents: agents.NAME.crisis_gate.",
    )
    country: str | None = setting(
        None,
        "The country of people who have named none, by its ISO 3166 code: its numbers are shown to them. "
        "When absent: numbers by language, and the question for the country.",
        example="DE",
        expected="a code of two letters",
        min_length=2,
        max_length=2,
    )
    resources: PathSetting | None = setting(
        None,
        "A TOML file with countries and their numbers, in the form of the shipped one; a country with the "
        "same code replaces the shipped one.",
        example="resources.toml",
    )
