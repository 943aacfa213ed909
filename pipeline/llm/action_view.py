"""A conversation with tool calls, as a small model understands it: plain words of user and assistant.

What a tool said becomes part of the user's words before it, without its marks: the model takes those for
words of the tool. The calls themselves are left out: the model would write such lines into its answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.domain.chat import ChatMessage
from pipeline.domain.marking import unmarked
from pipeline.llm.action_choice import latest_user
from pipeline.llm.action_truth import is_refusal

LOADERS = ("load_tools", "load_skills")
"""Their results say nothing to a user."""
_NOW_CHARS = 2_000
_EARLIER_CHARS = 300
_RESULT = "\n\n({name} says: {text})"
_ADVICE = "\nUse this to answer."


def in_plain_words(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """`messages` without a tool call and without the role `tool`. Results of the newest message are
    shown nearly whole, earlier ones by their beginning."""
    messages = _without_refusals(messages)
    newest = latest_user(messages)
    names: dict[str, str] = {}
    plain: list[ChatMessage] = []
    heard = False
    for at, message in enumerate(messages):
        names.update({call.id: call.name for call in message.tool_calls})
        if message.role == "tool":
            name = names.get(message.tool_call_id, "a tool")
            if name not in LOADERS:
                limit = _NOW_CHARS if at > newest >= 0 else _EARLIER_CHARS
                heard = heard or at > newest
                _tell(plain, _RESULT.format(name=name, text=unmarked(message.content)[:limit]))
        elif message.content or not message.tool_calls:
            plain.append(replace(message, tool_calls=()))
    if heard:
        _tell(plain, _ADVICE)
    return tuple(plain)


def _without_refusals(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """`messages` without earlier turns that end in a refusal: the model would go on refusing."""
    kept: list[ChatMessage] = []
    newest = latest_user(messages)
    for at, message in enumerate(messages):
        if (
            at < newest
            and message.role == "assistant"
            and not message.tool_calls
            and is_refusal(message.content)
        ):
            asked = latest_user(kept)
            if asked >= 0:
                del kept[asked:]
                continue
        kept.append(message)
    return kept


def _tell(plain: list[ChatMessage], words: str) -> None:
    """Put `words` behind what the user said last."""
    at = latest_user(plain)
    if at >= 0:
        plain[at] = replace(plain[at], content=plain[at].content + words)
    else:
        plain.append(ChatMessage(role="user", content=words.strip()))
