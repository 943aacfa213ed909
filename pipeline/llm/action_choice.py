"""Which tool, if any, a user's words call for: the question to the model, and its possible answers.

The question is a short prompt of its own, apart from the conversation: examples, then the words. Its
beginning is the same every time, so the server has it in its cache; the grammar leaves the model
nothing to say but one of the labels. The arguments are asked for later, by `action_arguments`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.domain.chat import ChatMessage, ToolDefinition
from pipeline.llm.action_examples import NO_TOOL

ANSWER = "answer"
"""The label of words that need no tool."""
_INSTRUCTION = "Name the tool that the user's message needs, or answer."
_LAST_EXAMPLE = "Tell me something nice."
_HEAD_CHARS = 400
_TAIL_CHARS = 200
_DESCRIBED_CHARS = 80
_FEWEST_OTHERS = 6
"""Examples that need no tool: as many as of tools, and not fewer than these."""
_ADDRESS = re.compile(r"https?://\S|\w[\w-]*\.[^\W\d_]{2}")
"""A full address, or a host's name without its scheme. Names of files look like hosts, which does no harm."""
_MOST = 40
"""Labels; each costs an example, and the prompt has to stay short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One label that the model may say."""

    label: str
    tool: ToolDefinition
    arguments: Mapping[str, Any] | None = field(default=None)
    """Where the label settles them: a tool that takes names out of a list is one choice for each name."""


def choices_of(tools: Iterable[ToolDefinition], settled: Iterable[str] = ()) -> tuple[Choice, ...]:
    """The choices among `tools`, without the labels `settled`. Of two with one label the first stays."""
    found: dict[str, Choice] = {}
    for tool in tools:
        for choice in _expanded(tool):
            if choice.label != ANSWER and choice.label not in settled:
                found.setdefault(choice.label, choice)
    return tuple(found.values())[:_MOST]


def choosing_body(
    choices: Sequence[Choice],
    words: str,
    before: tuple[str, str] | None = None,
    *,
    may_answer: bool = True,
) -> dict[str, Any]:
    """The request's body, in the words of chat completions; the answer is a label.

    `before` is what the user said last time, and the label that was right then. With `may_answer` off the
    label ANSWER is not among the possible ones.
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


def lacks_address(choice: Choice, said: Iterable[str]) -> bool:
    """Whether the choice needs the address of a page and nothing that was `said` has one: the model would
    make one up, and a person would be asked whether it may be read."""
    needs = choice.arguments is None and "url" in choice.tool.parameters.get("required", ())
    return needs and not any(_ADDRESS.search(words) for words in said)


def latest_user(messages: Sequence[ChatMessage]) -> int:
    """Where the newest user's message stands; -1 for none."""
    return next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role == "user"), -1)


def _expanded(tool: ToolDefinition) -> list[Choice]:
    properties = tool.parameters.get("properties", {})
    if len(properties) == 1:
        ((key, schema),) = properties.items()
        names = schema.get("items", {}).get("enum") if isinstance(schema, Mapping) else None
        if names and schema.get("type") == "array":
            return [Choice(label=str(name), tool=tool, arguments={key: [name]}) for name in names]
    return [Choice(label=tool.name, tool=tool)]


def _examples(choices: Sequence[Choice]) -> list[tuple[str, str]]:
    """Words and labels, those that need no tool spread evenly among the others."""
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


def _described(choice: Choice) -> str:
    if choice.arguments is not None:
        return f"Use {choice.label}"
    return choice.tool.description.partition(". ")[0][:_DESCRIBED_CHARS] or f"Use {choice.label}"


def _shortened(words: str) -> str:
    """Beginning and end: what is wanted stands before or behind what was pasted."""
    if len(words) <= _HEAD_CHARS + _TAIL_CHARS:
        return words
    return f"{words[:_HEAD_CHARS]} … {words[-_TAIL_CHARS:]}"
