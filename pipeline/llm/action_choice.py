"""Ask a small model which tool, if any, a user's message needs: the prompt and its possible answers.

The prompt is short and separate from the conversation: examples, then the message. Its beginning is the same
every time, so the server has it in its cache; the grammar allows only one of the labels as the answer.
`action_arguments` asks for the arguments later.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from pipeline.domain.chat import ChatMessage, ToolDefinition
from pipeline.domain.frozen import dataclass
from pipeline.llm.action_examples import NO_TOOL

ANSWER = "answer"
"""The label of messages that need no tool."""
_INSTRUCTION = "Name the tool that the user's message needs, or answer."
_LAST_EXAMPLE = "Tell me something nice."
_HEAD_CHARS = 400
_TAIL_CHARS = 200
_DESCRIBED_CHARS = 80
_FEWEST_OTHERS = 6
"""The least number of examples without a tool; otherwise as many as examples with one."""
_ADDRESS = re.compile(r"https?://\S|\w[\w-]*\.[^\W\d_]{2}")
"""A full address, or a host name without a scheme. File names match too, harmlessly."""
_MOST = 40
"""Labels; each needs an example, and the prompt has to stay short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionLabel:
    """One label that the model may answer."""

    label: str
    tool: ToolDefinition
    arguments: Mapping[str, Any] | None = field(default=None)
    """Set where the label determines them: a tool that takes names from a list has one choice per name."""


def choices_of(tools: Iterable[ToolDefinition], settled: Iterable[str] = ()) -> tuple[ActionLabel, ...]:
    """The choices among `tools`, without the labels in `settled`. The first of a label stays."""
    found: dict[str, ActionLabel] = {}
    for tool in tools:
        for choice in _expanded(tool):
            if choice.label != ANSWER and choice.label not in settled:
                found.setdefault(choice.label, choice)
    return tuple(found.values())[:_MOST]


def choosing_body(
    choices: Sequence[ActionLabel],
    words: str,
    before: tuple[str, str] | None = None,
    *,
    may_answer: bool = True,
) -> dict[str, Any]:
    """The body of a chat completions request whose answer is a label.

    `before` is the user's previous message and the label that was right for it. With `may_answer` off, the
    label ANSWER is not possible.
    """
    labels = [*([ANSWER] if may_answer else []), *(choice.label for choice in choices)]
    pairs = [*_examples(choices), (_LAST_EXAMPLE, ANSWER)]
    if before is not None and before[1] in (ANSWER, *labels):
        pairs.append((_shortened(before[0]), before[1]))
    messages = [{"role": "system", "content": _INSTRUCTION}]
    for said, label in pairs:
        messages += [{"role": "user", "content": said}, {"role": "assistant", "content": label}]
    messages.append({"role": "user", "content": _shortened(words)})
    return {
        "messages": messages,
        "temperature": 0.0,
        "max_tokens": 64,
        "grammar": "root ::= " + " | ".join(json.dumps(label) for label in labels),
    }


def lacks_address(choice: ActionLabel, said: Iterable[str]) -> bool:
    """Whether the choice needs the address of a page and no text in `said` has one: the model would invent
    one, and a person would be asked to approve it."""
    needs = choice.arguments is None and "url" in choice.tool.parameters.get("required", ())
    return needs and not any(_ADDRESS.search(words) for words in said)


def latest_user(messages: Sequence[ChatMessage]) -> int:
    """The index of the newest user message; -1 for none."""
    return next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role == "user"), -1)


def _expanded(tool: ToolDefinition) -> list[ActionLabel]:
    properties = tool.parameters.get("properties", {})
    if len(properties) == 1:
        ((key, schema),) = properties.items()
        names = schema.get("items", {}).get("enum") if isinstance(schema, Mapping) else None
        if names and schema.get("type") == "array":
            return [ActionLabel(label=str(name), tool=tool, arguments={key: [name]}) for name in names]
    return [ActionLabel(label=tool.name, tool=tool)]


def _examples(choices: Sequence[ActionLabel]) -> list[tuple[str, str]]:
    """Messages and labels; the ones without a tool are spread evenly among the others."""
    wanted = [(_described(choice), choice.label) for choice in choices]
    others = NO_TOOL[: max(_FEWEST_OTHERS, len(wanted))]
    mixed: list[tuple[str, str]] = []
    taken = 0
    for at, pair in enumerate(wanted):
        while taken < len(others) and taken * len(wanted) <= at * len(others):
            mixed.append((others[taken], ANSWER))
            taken += 1
        mixed.append(pair)
    return mixed + [(words, ANSWER) for words in others[taken:]]


def _described(choice: ActionLabel) -> str:
    if choice.arguments is not None:
        return f"Use {choice.label}"
    return choice.tool.description.partition(". ")[0][:_DESCRIBED_CHARS] or f"Use {choice.label}"


def _shortened(words: str) -> str:
    """The beginning and the end: the request comes before or after pasted text."""
    if len(words) <= _HEAD_CHARS + _TAIL_CHARS:
        return words
    return f"{words[:_HEAD_CHARS]} … {words[-_TAIL_CHARS:]}"
