"""Rewrite a conversation with tool calls for a small model: only messages of user and assistant.

A tool's result is appended to the user message before it, without its marks, which the model would take for
text of the tool. The calls are left out: the model would write such lines into its answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.domain.chat import ChatMessage
from pipeline.domain.marking import unmarked
from pipeline.llm.action_choice import latest_user
from pipeline.llm.action_truth import is_refusal

LOADERS = ("load_tools", "load_skills")
"""Tools whose results do not concern the user."""
_NOW_CHARS = 2_000
_EARLIER_CHARS = 300
_RESULT = "\n\n({name} says: {text})"
_ADVICE = "\nUse this to answer."


def in_plain_words(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """`messages` without tool calls and without the role `tool`. Results for the newest user message are
    nearly whole, earlier ones are cut to their beginning."""
    messages = _without_refusals(messages)
    newest = latest_user(messages)
    names: dict[str, str] = {}
    plain: list[ChatMessage] = []
    has_result = False
    for at, message in enumerate(messages):
        names.update({call.id: call.name for call in message.tool_calls})
        if message.role == "tool":
            name = names.get(message.tool_call_id, "a tool")
            if name not in LOADERS:
                limit = _NOW_CHARS if at > newest >= 0 else _EARLIER_CHARS
                has_result = has_result or at > newest
                _append_to_user(plain, _RESULT.format(name=name, text=unmarked(message.content)[:limit]))
        elif message.content or not message.tool_calls:
            plain.append(replace(message, tool_calls=()))
    if has_result:
        _append_to_user(plain, _ADVICE)
    return tuple(plain)


def _without_refusals(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """`messages` without earlier turns that end in a refusal, which the model would repeat."""
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


def _append_to_user(plain: list[ChatMessage], words: str) -> None:
    """Append `words` to the last user message."""
    at = latest_user(plain)
    if at >= 0:
        plain[at] = replace(plain[at], content=plain[at].content + words)
    else:
        plain.append(ChatMessage(role="user", content=words.strip()))
