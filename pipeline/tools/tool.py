"""The types of tools and tool groups. Not here: who may use a tool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from pipeline.domain.chat import ToolDefinition
from pipeline.domain.files import StoredFile
from pipeline.domain.frozen import dataclass
from pipeline.runtime.scope import TurnScope
from pipeline.shield.action_types import ActionType
from pipeline.tools.failures import Refused, ToolFailed
from pipeline.tools.folders import Place

__all__ = ["Refused", "Tool", "ToolFailed", "ToolFile", "ToolGroup", "ToolOutput", "tool_schema"]

_DESCRIBED_CHARS = 80
"""The most of the arguments in a readable line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFile:
    """A file for people, as a tool returns it."""

    data: bytes
    name: str = ""
    """The name to show; a path is cut to its last part."""
    mime: str = ""
    """The declared type. Whether the file is shown as a picture or played depends on its bytes."""
    caption: str = ""
    """A line to show with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """The result of a tool."""

    text: str
    """For the model. It is data: nothing in it is an instruction. It may be long and may contain secrets: the
    gate removes them and then shortens it."""
    left_out: int = 0
    """The number of further characters that the tool did not return."""
    success: bool = True
    foreign: str = ""
    """The source of the text in this program's words (`a web page`), if neither the turn's author nor the
    operator wrote it. For tools of others, the gate sets it."""
    files: tuple[ToolFile, ...] = ()
    """Files that are sent with the answer. The gate stores them, and tells the model of each."""
    stored: tuple[StoredFile, ...] = ()
    """Files that are stored already, and that the turn knows: those of sub-agents."""


Run = Callable[[Mapping[str, Any], TurnScope], Awaitable[ToolOutput]]


def described(arguments: Mapping[str, Any]) -> str:
    """The arguments in one line for people: `path: a.txt, text: Hello…`, at most 80 characters."""
    line = ", ".join(f"{key}: {value}" for key, value in arguments.items())
    line = " ".join(line.split())
    return line if len(line) <= _DESCRIBED_CHARS else line[: _DESCRIBED_CHARS - 1] + "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool that a model can call."""

    definition: ToolDefinition
    group: str
    """The name of its group."""
    run: Run
    """Executes the call, for the turn's owner only. The arguments fit the definition's schema. Raises
    ToolFailed or its subclass Refused with a text for the model; other exceptions are reported without their
    details. Cancelling it ends it."""
    reads_only: bool = False
    """It changes nothing anywhere: it may be repeated after a crash, and runs off the record."""
    own_only: bool = False
    """It changes only minor data of the turn's owner: it runs without approval, like a tool that only reads.
    Never set for a tool that deletes files or notes."""
    built_in: bool = True
    """False for tools of others, such as MCP servers': they need approval, whatever they declare about
    themselves."""
    action_type: ActionType | None = None
    """What it does, for the policy's rules; None if `pipeline.shield.action_types` knows the tool by name, or
    if the type follows from the flags. Does not count for tools of others."""
    delegates: bool = False
    """It changes nothing itself: each call that it causes is judged separately."""
    own_words: bool = False
    """Its result is this program's own text, such as a sum or the time, and is not marked as data."""
    answers: bool = False
    """Its result, and the text of its ToolFailed, is a sentence or a text that may be shown to people as the
    answer."""
    changes: Callable[[Mapping[str, Any], TurnScope], tuple[Place, ...]] | None = None
    """Returns the files that the call would change, create or delete; None for a tool that changes no file.
    Accesses the disk. Raises ToolFailed."""
    timeout_s: float | None = None
    """The longest execution in seconds; None: the gate's setting."""
    describe: Callable[[Mapping[str, Any]], str] = described
    """Returns one readable line: what the call will do."""
    preview: Callable[[Mapping[str, Any], TurnScope], Awaitable[str]] | None = None
    """Returns what the arguments mean, in words for the question to a person. Changes nothing. Raises
    ToolFailed for arguments that mean nothing: then no person is asked."""

    @property
    def name(self) -> str:
        """The name that the model uses."""
        return self.definition.name


class ToolGroup(Protocol):
    """Tools that are loaded together."""

    @property
    def name(self) -> str:
        """The name for `load_tools`: `files`, `web`, `mcp:<server>`."""
        ...

    @property
    def description(self) -> str:
        """Its purpose, in one short sentence for the model."""
        ...

    async def tools(self, scope: TurnScope) -> tuple[Tool, ...]:
        """Its tools for a turn. May start a server. Raises ToolFailed if they are not available now."""
        ...

    async def close(self) -> None:
        """Release its resources. Safe to call more than once."""
        ...


@runtime_checkable
class PartialGroup(Protocol):
    """A ToolGroup that may have unusable tools."""

    @property
    def unusable(self) -> tuple[str, ...]:
        """The unusable tools of the last listing: each name, safe for the model, with the reason in
        parentheses."""
        ...


def tool_schema(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The JSON schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }
