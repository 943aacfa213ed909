"""The settings of the crisis gate: [safety]."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from gateway.config.agent import check_model
from gateway.config.chat_place import MAX_ID, MAX_NAME, ChatPlace
from gateway.config.secrets import SecretRef
from gateway.config.section import PathSetting, Section, setting
from gateway.config.value_checks import check_classifier_base


def _check_classifier(value: str | None) -> str | None:
    """As `check_model`, or "agent"."""
    return value if value in (None, "agent") else check_model(value)


class NoticeSettings(ChatPlace):
    """[safety.notice]: the chat where each crisis response is reported, without a word of the person."""

    channel: str | None = setting(
        None,
        "The channel of the chat that gets the notices. When absent: no notices.",
        example="telegram",
        min_length=1,
        max_length=MAX_NAME,
    )
    chat: str | None = setting(
        None,
        "The chat, by the platform's id. Its readers learn that a person was in danger, when, and with "
        "which agent.",
        example="123456789",
        min_length=1,
        max_length=MAX_ID,
    )


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
    vectors: Literal["none", "local"] = setting(
        "none",
        "Whether sentence vectors of a small model on this machine also judge what people write to agents "
        "with the graph companion: none or local (in a child process; comes with `pip install "
        "'parlour[memory]'`). They find more that is said indirectly, and never lower what a pattern finds.",
    )
    classifier: Annotated[str | None, AfterValidator(_check_classifier)] = setting(
        None,
        'A model that is asked about each message in which the rules find no clear danger: "agent" for the '
        "model of the agent that answers, or another one. It can only raise the level. Agents with the "
        'embedded model get no classifier from "agent". When absent: rules alone.',
        example="anthropic/claude-haiku-4-5",
        expected='"agent", "scripted:…" or a LiteLLM model name',
        max_length=2_000,
    )
    classifier_api_base: Annotated[str | None, AfterValidator(check_classifier_base)] = setting(
        None,
        "The address of the classifier's API, when it is not the provider's own. The key of [llm] is not "
        "sent there.",
        example="http://127.0.0.1:11434",
        expected="an address that starts with http:// or https://",
    )
    classifier_api_key: SecretRef | None = setting(
        None, "The key for the classifier's API, by reference.", example="env:ANTHROPIC_API_KEY"
    )
    classifier_timeout_s: float = setting(
        8.0, "Seconds after which the verdict of the rules counts.", ge=1, le=60
    )
    notice: NoticeSettings = NoticeSettings()
