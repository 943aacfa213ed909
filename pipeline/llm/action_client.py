"""Tools for a model that is too small for a tool protocol: it chooses, then fills in, then talks.

The small model fails at native tool calls, and in one answer of "either words or a call" it calls tools
for nothing or never. So the choice is a question of its own (`action_choice`), the arguments are another
(`action_arguments`), and words are asked for exactly as without tools (`action_view`).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from pipeline.domain.chat import ChatMessage, ToolCall
from pipeline.llm.action_arguments import arguments_body
from pipeline.llm.action_choice import (
    ANSWER,
    Choice,
    choices_of,
    choosing_body,
    label_for,
    lacks_address,
    latest_user,
)
from pipeline.llm.action_view import LOADERS, in_plain_words
from pipeline.llm.client import LlmFinished, LlmItem, LlmRequest, TextDelta, ToolAsked
from pipeline.llm.direct_client import DirectClient


class ActionClient:
    """Streams answers of the small model behind `door`.

    One tool for each of the user's messages, besides loading: whether a second one is still to be done
    is more than the choice can tell.
    """

    def __init__(self, door: DirectClient) -> None:
        self._door = door

    async def stream(self, request: LlmRequest, deadline: float) -> AsyncGenerator[LlmItem, None]:
        """See `LlmClient.stream`; `deadline` is a time of the running event loop."""
        asked = _Asked(self._door, deadline)
        call = await _call(request, asked)
        if call is not None:
            yield ToolAsked(call=call)
            yield asked.added_to(LlmFinished(finish_reason="tool_calls"))
            return
        body = self._door.body_of(replace(request, messages=in_plain_words(request.messages), tools=()))
        async with aclosing(self._door.complete(body, deadline=deadline, retries=0)) as items:
            async for item in items:
                yield asked.added_to(item) if isinstance(item, LlmFinished) else item

    async def close(self) -> None:
        """Close the connections."""
        await self._door.close()


async def _call(request: LlmRequest, asked: _Asked) -> ToolCall | None:
    """The call that the newest user's message needs; None for words."""
    at = latest_user(request.messages)
    done = _calls(request.messages[at + 1 :])
    if at < 0 or not request.tools or any(call.name not in LOADERS for call in done):
        return None
    # What is loaded is enough: a long list of choices costs seconds, and there is one tool for a message.
    tools = [tool for tool in request.tools if tool.name not in LOADERS] or request.tools
    choices = choices_of(tools, _settled(done))
    if not choices:
        return None
    words = request.messages[at].content
    earlier = request.messages[:at]
    # A group was loaded for these words because they need a tool: asked again, the model wavers.
    may_answer = not done or choices[0].tool.name in LOADERS
    body = choosing_body(choices, words, _chosen_before(earlier, choices), may_answer=may_answer)
    label = await asked.text(body)
    choice = next((one for one in choices if one.label == label), None)
    before = _said_before(earlier)
    if choice is None or lacks_address(choice, (words, *(before or ()))):
        return None
    arguments = choice.arguments
    if arguments is None and not choice.tool.parameters.get("properties"):
        arguments = {}
    if arguments is not None:
        text = json.dumps(arguments, ensure_ascii=False)
    else:
        text = await asked.text(arguments_body(choice.tool, words, before))
    return ToolCall(id=f"call_{secrets.token_hex(8)}", name=choice.tool.name, arguments=text)


def _calls(messages: Sequence[ChatMessage]) -> list[ToolCall]:
    return [call for message in messages for call in message.tool_calls]


def _settled(loads: Sequence[ToolCall]) -> set[str]:
    """What was loaded for this message already, or was tried."""
    names: set[str] = set()
    for call in loads:
        for given in _object(call.arguments).values():
            names.update(str(name) for name in (given if isinstance(given, list) else [given]))
    return names


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _chosen_before(earlier: Sequence[ChatMessage], choices: Sequence[Choice]) -> tuple[str, str] | None:
    """The user's message before this one, and the label of the tool that it was done with."""
    at = latest_user(earlier)
    if at < 0:
        return None
    used = [call.name for call in _calls(earlier[at:]) if call.name not in LOADERS]
    labels = [choice.label for choice in choices]
    return earlier[at].content, label_for(used[0], labels) if used else ANSWER


def _said_before(earlier: Sequence[ChatMessage]) -> tuple[str, str] | None:
    at = latest_user(earlier)
    if at < 0:
        return None
    return earlier[at].content, earlier[-1].content if earlier[-1].role == "assistant" else ""


@dataclass(slots=True)
class _Asked:
    """The questions that were asked besides the answer, and what they cost."""

    door: DirectClient
    deadline: float
    prompt_tokens: int = 0
    completion_tokens: int = 0

    async def text(self, body: Mapping[str, Any]) -> str:
        """The whole answer to a question."""
        pieces: list[str] = []
        async with aclosing(self.door.complete(body, deadline=self.deadline, retries=0)) as items:
            async for item in items:
                if isinstance(item, TextDelta):
                    pieces.append(item.text)
                elif isinstance(item, LlmFinished):
                    self.prompt_tokens += item.prompt_tokens
                    self.completion_tokens += item.completion_tokens
        return "".join(pieces).strip()

    def added_to(self, finished: LlmFinished) -> LlmFinished:
        return replace(
            finished,
            prompt_tokens=finished.prompt_tokens + self.prompt_tokens,
            completion_tokens=finished.completion_tokens + self.completion_tokens,
        )
