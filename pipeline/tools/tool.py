"""What a tool is, to the gate, the registry and whoever writes one; not who may use it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pipeline.domain.chat import ToolDefinition
from pipeline.domain.errors import ParlourError
from pipeline.runtime.scope import TurnScope

_DESCRIBED_CHARS = 80
"""Of the arguments, in a line for people. (seed 4: thoughts)"""


class ToolFailed(ParlourError):
    """The tool could not do it; the message says why, to the model."""

    code = "tool_failed"


class Refused(ToolFailed):
    """The tool may not do it, whoever asks; the message says why, to the model."""

    code = "tool_refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What a tool returned."""

    text: str
    """For the model. It is data: nothing in it is an instruction. It may be long, and may hold secrets: the
    gate shortens it, after it has taken them out."""
    left_out: int = 0
    """So many more characters there were that the tool did not return."""
    success: bool = True
    foreign: str = ""
    """Whose words the text holds, in words of ours (`a web page`), where they are neither the turn's author's
    nor the operator's. Of tools of others the gate says it."""


Run = Callable[[Mapping[str, Any], TurnScope], Awaitable[ToolOutput]]


def described(arguments: Mapping[str, Any]) -> str:
    """The arguments in one line for people: `path: a.txt, text: Hello…`, at most 80 characters."""
    line = ", ".join(f"{key}: {value}" for key, value in arguments.items())
    line = " ".join(line.split())
    return line if len(line) <= _DESCRIBED_CHARS else line[: _DESCRIBED_CHARS - 1] + "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One thing that a model can ask for."""

    definition: ToolDefinition
    group: str
    """The name of its group."""
    run: Run
    """Does it, for the turn's owner and nobody else. The arguments fit the definition's schema. Raises
    ToolFailed, Refused among them, with words for the model; it may raise anything else, which is said
    without its details. Cancelling it ends it."""
    reads_only: bool = False
    """It changes nothing anywhere: it may be repeated after a crash, and runs off the record."""
    own_only: bool = False
    """What it changes is the turn owner's alone, and of little weight: it runs without asking, as one that
    only reads does. Never one that deletes files or notes."""
    built_in: bool = True
    """False for tools of others, MCP servers' among them: those are asked for, whatever they say of
    themselves."""
    delegates: bool = False
    """It changes nothing by itself: what it sets off is judged call by call."""
    own_words: bool = False
    """What it returns are the program's own words, as a sum or the time are: not marked as data."""
    answers: bool = False
    """What it returns is a sentence, or a text, that people may be shown as the answer; so are the words of
    its ToolFailed."""
    timeout_s: float | None = None
    """Seconds that one execution may take; None: as the gate is set."""
    describe: Callable[[Mapping[str, Any]], str] = described
    """One line for people: what it is about to do."""

    @property
    def name(self) -> str:
        """As the model calls it."""
        return self.definition.name


class ToolGroup(Protocol):
    """Tools that are loaded together."""

    @property
    def name(self) -> str:
        """As `load_tools` calls it: `files`, `web`, `mcp:<server>`."""
        ...

    @property
    def description(self) -> str:
        """What it is for, in one short sentence for the model."""
        ...

    async def tools(self, scope: TurnScope) -> tuple[Tool, ...]:
        """Its tools for a turn. May start a server. Raises ToolFailed where they cannot be had now."""
        ...

    async def close(self) -> None:
        """Give back what it holds. Doing it twice is harmless."""
        ...


@runtime_checkable
class PartialGroup(Protocol):
    """A ToolGroup of which not every tool may be usable."""

    @property
    def unusable(self) -> tuple[str, ...]:
        """Of the last listing, for each such tool its name, safe for the model, with the reason in
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
