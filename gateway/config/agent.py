"""The settings of the agent: [agent], [tools], [limits], [budget]."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator

from gateway.config.search import SearchSettings
from gateway.config.section import PathSetting, Section, setting
from gateway.config.shell import ShellSettings
from gateway.config.value_checks import (
    check_gate,
    check_graph,
    check_language_tag,
    check_llm_model,
    check_voice,
)

ToolGroup = Literal[
    "files", "web", "notes", "schedule", "system", "agents", "attachments", "mcp", "plugins", "shell"
]
TOOL_GROUPS: tuple[ToolGroup, ...] = get_args(ToolGroup)
_USUAL_GROUPS: tuple[ToolGroup, ...] = tuple(group for group in TOOL_GROUPS if group != "shell")


def check_model(value: str | None) -> str | None:
    """Check the name of a model that may be absent. Raises ValueError."""
    return None if value is None else check_llm_model(value)


class AgentSettings(Section):
    """[agent]: how the assistant works on a message."""

    workspace: PathSetting | None = setting(
        None,
        "The folder of the bot's own texts: IDENTITY.md, SOUL.md, USER.md, MEMORY.md, AGENTS.md, skills. "
        "When absent: workspace in data.dir.",
        example="workspace",
    )
    graph: Annotated[str, AfterValidator(check_graph)] = setting(
        "conversation",
        "The graph that works on a message: a name (see `parlour graph show`), or the file of a graph "
        "document or a workflow, whose path starts at the folder in which the program is started, or "
        "saved:NAME for a workflow that the page's editor has saved.",
        expected="a graph's name, a file that ends in .json or saved:NAME",
        min_length=1,
        max_length=1_000,
    )
    gate: Annotated[str, AfterValidator(check_gate)] = setting(
        "",
        "The graph that sees every message first, as a name or a file: where it replies, the message goes no "
        "further (docs/guides/graphs.md). Empty for none.",
        expected="a graph's name or a file that ends in .json",
        max_length=1_000,
    )
    completion: Literal["auto", "declared", "implicit", "nudged"] = setting(
        "auto",
        "Whether the prompt asks the model to declare in its answer that it is done, blocked or continues. "
        "An answer without a tool call and without a declaration is the last one; with nudged the model is "
        "asked once more, which costs a call. implicit: the prompt asks for nothing. auto: declared, but "
        "implicit for embedded and scripted models.",
    )
    max_rounds: int = setting(
        25, "How many rounds of tool calls one message may take; loading tools counts twice.", ge=1, le=200
    )
    show_work: Literal["quiet", "normal", "detailed"] = setting(
        "normal",
        "How much of the work is shown while an answer is made: nothing, one changing line, or every step.",
    )
    remember_facts: bool = setting(
        default=False,
        description="Whether lasting facts are written into a person's own MEMORY.md when a long "
        "conversation is summarised.",
    )
    summarise_above: int = setting(
        80, "Messages of a conversation above which its beginning is summarised.", ge=4, le=10_000
    )
    history_tokens: int = setting(
        96_000,
        "The most tokens of earlier messages that its model sees, however large the model's window is. At "
        "70 % of it the beginning is summarised, down to half.",
        ge=256,
        le=2_000_000,
    )
    session_idle_s: float = setting(
        0.0,
        "Seconds without a message after which a conversation ends: the next message begins a new one, as "
        "after /new. 0: never.",
        ge=0,
        le=31_536_000,
    )
    titles: bool = setting(
        default=True, description="Whether a conversation gets a title after its third exchange."
    )
    language: Annotated[str | None, AfterValidator(check_language_tag)] = setting(
        None,
        "The language that it answers in unless a person writes in another, in which it expects speech of a "
        "person who has not spoken yet, and in which its answers are read aloud to that person. A BCP 47 tag "
        "such as de, pt-BR or zh-Hant.",
        example="de",
        expected="a language tag",
    )
    voice: Annotated[str | None, AfterValidator(check_voice)] = setting(
        None,
        "The voice that reads its answers in that voice's language: the name of a file in "
        "voice.replies.voices_path without .onnx. When absent: the first voice of the language.",
        example="en_US-ryan-low",
        expected="a voice's name",
        max_length=100,
    )


class ToolsSettings(Section):
    """[tools]: what the assistant may use."""

    enabled: bool = setting(default=True, description="Whether the assistant has tools at all.")
    groups: tuple[ToolGroup, ...] = setting(
        _USUAL_GROUPS,
        'The groups of tools that it may load. All but "shell", which runs commands in a sandbox, is the '
        "default.",
        expected=f"a list of groups out of {', '.join(TOOL_GROUPS[:-1])} and {TOOL_GROUPS[-1]}",
        max_length=len(TOOL_GROUPS),
        strict=False,
    )
    approval_s: float = setting(
        300.0, "Seconds in which a person can allow a tool; then it is refused.", ge=5, le=86_400
    )
    link_hosts: tuple[str, ...] = setting(
        (),
        "Hosts, with their subdomains, to which answers may link when the conversation contains foreign "
        "text (pages, MCP results, forwarded messages); for other links only the host is shown.",
        expected="a list of host names",
        max_length=200,
        strict=False,
    )
    timeout_s: float = setting(60.0, "Seconds that one tool call may take.", ge=1, le=3_600)
    mcp_file: PathSetting | None = setting(
        None,
        'A JSON file of MCP servers in the usual form: {"mcpServers": {"name": {"command": …}}}.',
        example="mcp.json",
    )
    mcp_idle_s: float = setting(
        300.0, "Seconds after which an unused MCP server is stopped.", ge=1, le=86_400
    )
    search: SearchSettings = SearchSettings()
    shell: ShellSettings = ShellSettings()


class LimitsSettings(Section):
    """[limits]: what one person may send."""

    messages_per_minute: int = setting(
        30,
        "Messages of one person in a minute; more are refused, with one notice. 0 sets no limit.",
        ge=0,
        le=10_000,
    )
    spam: Literal["answer", "refuse"] = setting(
        "answer", "What happens to a message that looks like spam; refused ones get a notice."
    )
    too_fast: Literal["answer", "refuse"] = setting(
        "answer",
        "What happens to a message that comes within 400 ms of the one before, or is the 13th in 10 seconds.",
    )


class BudgetSettings(Section):
    """[budget]: what the model may cost. A day is one of UTC; 0 sets no limit."""

    person_tokens: int = setting(0, "Tokens a day for one person.", ge=0, le=10_000_000_000)
    chat_tokens: int = setting(0, "Tokens a day for one chat.", ge=0, le=10_000_000_000)
    tokens: int = setting(0, "Tokens a day for everybody together.", ge=0, le=10_000_000_000)
    cost: float = setting(
        0.0,
        "US dollars a day for everybody together, where the provider's price is known.",
        ge=0,
        le=1_000_000,
    )
    cheaper_model: Annotated[str | None, AfterValidator(check_model)] = setting(
        None,
        "The model that answers when a budget is nearly used up; it uses the same address and key.",
        example="openai/gpt-5-nano",
        expected='"local", "scripted:…" or a LiteLLM model name',
        max_length=2_000,
    )
    cheaper_from: float = setting(
        0.8, "The fraction of a budget from which the cheaper model answers.", ge=0.05, le=1
    )
