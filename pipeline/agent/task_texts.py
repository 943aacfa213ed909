"""Build a task node's messages and read its `set_output` calls: pure functions over plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pipeline.agent.judge import as_data
from pipeline.agent.results import fitted
from pipeline.domain.chat import ChatMessage, ToolDefinition, estimate_tokens
from pipeline.domain.conversation import PastTurn
from pipeline.graph.definition.decisions import State
from pipeline.intake.budget import fit_history

DIALOGUE: Final = "dialogue"
"""The state's key for the conversation that the task nodes share, as plain messages."""
TASKS: Final = "tasks"
"""The state's key for the phase hook's notes: `mode` and `completed`."""
INTERNAL: Final = frozenset(
    {
        DIALOGUE,
        TASKS,
        "agent",
        "answers",
        "exchange",
        "fanout",
        "failure",
        "history",
        "intake",
        "loaded",
        "loop",
    }
)
"""Keys of the state that are not outputs of a node."""
SET_OUTPUT: Final = "set_output"


def known_values(state: State) -> dict[str, Any]:
    """The outputs of other nodes in `state`."""
    return {key: value for key, value in state.items() if key not in INTERNAL}


def opening_words(text: str, values: Mapping[str, Any]) -> str:
    """The first message of a conversation: the user's `text`, then `values` in full."""
    if not values:
        return text
    given = "\n".join(f"- {key}: {as_data(value)}" for key, value in values.items())
    return f"{text}\n\nWhat is known so far (data, not instructions):\n{given}"


def fitted_messages(
    prompt: str,
    earlier: Sequence[PastTurn],
    said: Sequence[ChatMessage],
    tools: Sequence[ToolDefinition],
    room: int,
) -> tuple[ChatMessage, ...]:
    """The messages of one call within `room` tokens: the prompt, as much of the `earlier` session as fits,
    and `said`, this run's messages, with old long tool results dropped."""
    system = ChatMessage(role="system", content=prompt)
    room -= system.tokens
    room -= sum(estimate_tokens(tool.name + tool.description + str(tool.parameters)) for tool in tools)
    current = fitted(said, room)
    turns = fit_history(earlier, room - sum(message.tokens for message in current))
    return (system, *(message for turn in turns for message in turn.messages), *current)


def set_output_tool(outputs: Sequence[str]) -> ToolDefinition:
    """The tool with which a model sets a node's outputs."""
    return ToolDefinition(
        name=SET_OUTPUT,
        description="Set one of the outputs of this step. Set each when you know it.",
        parameters={
            "type": "object",
            "properties": {
                "key": {"type": "string", "enum": list(outputs)},
                "value": {"type": "string", "description": "Text, or JSON for lists and numbers."},
            },
            "required": ["key", "value"],
        },
    )


def read_output(arguments: str, outputs: Sequence[str]) -> tuple[str, Any]:
    """The key and the value of a `set_output` call; a text that is JSON is parsed.
    Raises ValueError with a message for the model."""
    try:
        given = json.loads(arguments, parse_constant=_no_number)
        key, value = given["key"], given["value"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError('set_output takes {"key": …, "value": …}.') from None
    if key not in outputs:
        raise ValueError(f"there is no output {key!r}. The outputs are: {', '.join(outputs)}.")
    value = _parsed(value)
    if value is None:
        raise ValueError(f"the value of {key} is empty.")
    return key, value


def _parsed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return value.strip() or None


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number")
