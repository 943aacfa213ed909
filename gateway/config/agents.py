"""The tables that repeat: [agents.NAME], further agents beside the default one, and [[routes]], which of
them answers where.

Not here: the default agent's settings (`settings`, `agent`) and rules across tables (`agent_rules`).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gateway.config.agent import TOOL_GROUPS, ToolGroup, check_model
from gateway.config.secrets import SecretRef
from gateway.config.section import PathSetting, Section, setting
from gateway.config.value_checks import (
    check_api_base,
    check_gate,
    check_graph,
    check_language_tag,
    check_llm_model,
    check_voice,
)

DEFAULT_GRAPH = "conversation"
"""The graph of an agent that names none."""
DEFAULT_AGENT = "default"
"""The name of the agent that [bot], [llm], [agent] and [tools] describe."""


ModelName = Annotated[str, AfterValidator(check_llm_model), Field(max_length=100)]
"""A model that people can name in a command."""


class AgentProfile(Section):
    """[agents.NAME]: a further agent. What a table leaves out is as for the default one."""

    description: str = setting(
        "",
        "What it is for, in a few words: /agent shows it to people.",
        example="Answers questions about orders",
        min_length=0,
        max_length=200,
    )
    model: Annotated[str | None, AfterValidator(check_model)] = setting(
        None,
        "Its language model, as in llm.model. The address and the key of [llm] are used for it only if "
        "both models have the same provider.",
        example="openai/gpt-5-mini",
        expected='"local", "scripted:…" or a LiteLLM model name',
        max_length=2_000,
    )
    choices: tuple[ModelName, ...] | None = setting(
        None,
        "As llm.choices; [] for none.",
        example=["openai/gpt-5"],
        expected="a list of names as in llm.model",
        max_length=20,
        strict=False,
    )
    api_base: Annotated[str | None, AfterValidator(check_api_base)] = setting(
        None,
        "The address of its model's API. The key of [llm] is not sent there.",
        example="http://127.0.0.1:11434",
        expected="an address that starts with http:// or https://",
    )
    api_key: SecretRef | None = setting(
        None, "The key for its model's API, by reference.", example="env:SUPPORT_OPENAI_API_KEY"
    )
    timeout_s: float | None = setting(None, "As llm.timeout_s.", example=60, ge=0, le=3_600)
    max_tokens: int | None = setting(None, "As llm.max_tokens.", example=1_024, ge=1, le=131_072)
    context_tokens: int | None = setting(None, "As llm.context_tokens.", example=8_192, ge=256, le=2_000_000)
    temperature: float | None = setting(None, "As llm.temperature.", example=0.7, ge=0, le=2)
    vision: bool | None = setting(None, "As llm.vision.", example=True, expected="true or false")
    system_prompt: str | None = setting(
        None,
        "The instruction that its model gets before every conversation, in place of bot.system_prompt.",
        example="You answer questions about orders.",
        min_length=1,
        max_length=20_000,
    )
    workspace: PathSetting | None = setting(
        None,
        "The folder of its texts, notes and skills. When absent: that of the default agent, which both "
        "use then.",
        example="workspaces/support",
    )
    graph: Annotated[str | None, AfterValidator(check_graph)] = setting(
        None,
        "As agent.graph.",
        example="examples/graphs/support.json",
        expected="a graph's name, a file that ends in .json or saved:NAME",
        min_length=1,
        max_length=1_000,
    )
    gate: Annotated[str | None, AfterValidator(check_gate)] = setting(
        None,
        'As agent.gate; "" for none.',
        example="examples/graphs/gate.json",
        expected="a graph's name or a file that ends in .json",
        max_length=1_000,
    )
    crisis_gate: Literal["on", "off"] | None = setting(
        None, "As safety.gate, for this agent; off exempts it from the crisis gate.", example="off"
    )
    tools: tuple[ToolGroup, ...] | None = setting(
        None,
        "The groups of tools that it may load, out of those in tools.groups; [] for none.",
        example=["notes", "schedule"],
        expected=f"a list of groups out of {', '.join(TOOL_GROUPS[:-1])} and {TOOL_GROUPS[-1]}",
        max_length=len(TOOL_GROUPS),
        strict=False,
    )
    max_rounds: int | None = setting(None, "As agent.max_rounds.", example=10, ge=1, le=200)
    summarise_above: int | None = setting(None, "As agent.summarise_above.", example=40, ge=4, le=10_000)
    history_tokens: int | None = setting(
        None, "As agent.history_tokens.", example=8_000, ge=256, le=2_000_000
    )
    session_idle_s: float | None = setting(
        None, "As agent.session_idle_s.", example=43_200, ge=0, le=31_536_000
    )
    language: Annotated[str | None, AfterValidator(check_language_tag)] = setting(
        None, "As agent.language.", example="de", expected="a language tag"
    )
    voice: Annotated[str | None, AfterValidator(check_voice)] = setting(
        None, "As agent.voice.", example="en_US-ryan-low", expected="a voice's name", max_length=100
    )
    tokens: int = setting(
        0, "Tokens a day for all its conversations together; 0 sets no limit.", ge=0, le=10_000_000_000
    )


class RouteSettings(Section):
    """[[routes]]: which agent answers where. The first route counts of which every given key matches;
    where none does, the default agent answers."""

    agent: str = setting(
        DEFAULT_AGENT, "The agent that answers: a NAME of [agents.NAME].", min_length=1, max_length=32
    )
    also: tuple[str, ...] = setting(
        (),
        "Agents that people can choose there with /agent NAME.",
        example=["research"],
        expected="a list of names of [agents.NAME]",
        max_length=20,
        strict=False,
    )
    channel: str | None = setting(
        None,
        "The channel, as its table below [channels] is named.",
        example="telegram",
        min_length=1,
        max_length=64,
    )
    account: str | None = setting(
        None,
        "The bot's account on the channel, as `parlour doctor` and the log name it.",
        example="shop_bot",
        min_length=1,
        max_length=200,
    )
    room: str | None = setting(
        None, "The chat's id on the platform.", example="-1001234567890", min_length=1, max_length=200
    )
    person: str | None = setting(
        None, "The author's id on the platform.", example="123456789", min_length=1, max_length=200
    )
    kind: Literal["private", "room"] | None = setting(
        None, "Whether the chat is between one person and the bot, or a room.", example="private"
    )
