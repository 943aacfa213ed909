"""Let a model that is too small for a tool protocol use tools.

Rules find the requests for built-in tools and their arguments (`requests`). Among other tools, the model
chooses one (`action_choice`) and then writes the arguments (`action_arguments`). Text answers are requested
exactly as without tools (`action_view`), and checked against what was done (`action_truth`).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from pipeline.domain.chat import ChatMessage, ToolCall, ToolDefinition
from pipeline.domain.marking import unmarked
from pipeline.llm.action_arguments import arguments_body, borrowed
from pipeline.llm.action_choice import (
    ANSWER,
    ActionLabel,
    choices_of,
    choosing_body,
    lacks_address,
    latest_user,
)
from pipeline.llm.action_truth import (
    HELD_CHARS,
    NOTHING_DONE,
    TURNED_OFF,
    WHO,
    asks_who,
    claims_done,
    is_delicate,
    is_refusal,
    names_a_maker,
)
from pipeline.llm.action_view import LOADERS, in_plain_words
from pipeline.llm.client import LlmFinished, LlmItem, LlmRequest, TextDelta, ToolAsked
from pipeline.llm.direct_client import DirectClient
from pipeline.llm.requests import CHANGING, GROUPS, read_request

_LOAD_TOOLS = "load_tools"
_RESULT_CHARS = 1_000
"""The most of a tool's result that replaces a refusal of the model."""


class ActionClient:
    """Streams answers of the small model that `client` reaches.

    It calls one tool per user message, plus loading: the choice cannot say reliably whether a second tool is
    needed.
    """

    def __init__(self, client: DirectClient) -> None:
        self._client = client

    async def stream(self, request: LlmRequest, deadline: float) -> AsyncGenerator[LlmItem, None]:
        """See `LlmClient.stream`; `deadline` is a time of the running event loop."""
        asked = _Asked(self._client, deadline)
        found = await _call(request, asked)
        match found:
            case ToolCall():
                yield ToolAsked(call=found)
                yield asked.added_to(LlmFinished(finish_reason="tool_calls"))
                return
            case str():
                yield TextDelta(text=found)
                yield LlmFinished(finish_reason="stop")
                return
        body = self._client.body_of(replace(request, messages=in_plain_words(request.messages), tools=()))
        async with aclosing(_true_words(request, self._client, body, deadline)) as items:
            async for item in items:
                yield asked.added_to(item) if isinstance(item, LlmFinished) else item

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


async def _true_words(
    request: LlmRequest, client: DirectClient, body: Mapping[str, Any], deadline: float
) -> AsyncGenerator[LlmItem, None]:
    """The model's answer, or a true text in its place where its beginning is wrong."""
    at = latest_user(request.messages)
    results = _results(request.messages[at + 1 :]) if at >= 0 else []
    words = (request.asked or request.messages[at].content) if request.tools and at >= 0 else ""
    judged = bool(results) or is_delicate(words)
    held = ""
    answer = client.complete(body, deadline=deadline, retries=0, quiet_s=request.timeout_s)
    async with aclosing(answer) as items:
        async for item in items:
            if not judged:
                yield item
                continue
            if isinstance(item, TextDelta):
                held += item.text
            over = isinstance(item, LlmFinished)
            if not over and len(held) < HELD_CHARS:
                continue
            instead = _instead(held, words, results)
            yield TextDelta(text=instead or held)
            if instead:
                # The rest is not needed: closing the stream stops the model.
                yield item if isinstance(item, LlmFinished) else LlmFinished(finish_reason="stop")
                return
            judged = False
            if over:
                yield item


def _instead(answer: str, words: str, results: Sequence[str]) -> str:
    """The text that replaces `answer` to the user's `words`; empty where the answer stays."""
    if results:
        return "\n\n".join(results)[:_RESULT_CHARS] if is_refusal(answer) else ""
    if asks_who(words) and names_a_maker(answer) and "?" not in answer:
        return WHO
    return NOTHING_DONE if claims_done(answer) else ""


async def _call(request: LlmRequest, asked: _Asked) -> ToolCall | str | None:
    """The call that the newest user message needs, or the answer where the tool is missing; None where the
    model has to answer."""
    at = latest_user(request.messages)
    done = _calls(request.messages[at + 1 :])
    if at < 0 or not request.tools or any(call.name not in LOADERS for call in done):
        return None
    wanted = read_request(request.asked or request.messages[at].content)
    if wanted is None:
        return await _chosen(request, at, done, asked)
    loadable = _loadable(request.tools)
    if any(tool.name == wanted.tool for tool in request.tools) or wanted.group in _settled(done):
        # Off the record the tool is not offered; the call is proposed all the same, for the gate's refusal.
        return _made(wanted.tool, wanted.arguments)
    if wanted.group in loadable:
        return _made(_LOAD_TOOLS, {"groups": [wanted.group]})
    return TURNED_OFF


async def _chosen(request: LlmRequest, at: int, done: Sequence[ToolCall], asked: _Asked) -> ToolCall | None:
    """The call that the model chooses among the tools that are not built in."""
    # Loaded tools are enough: a long list of choices costs seconds, and a message gets one tool.
    tools = [tool for tool in request.tools if tool.name not in LOADERS] or request.tools
    choices = [
        choice
        for choice in choices_of(tools, _settled(done))
        if choice.tool.name not in CHANGING
        and not (choice.tool.name == _LOAD_TOOLS and choice.label in GROUPS)
    ]
    if not choices:
        return None
    words = request.messages[at].content
    earlier = request.messages[:at]
    # A group was loaded because this message needs a tool: asked again, the model may decide otherwise.
    may_answer = not done or choices[0].tool.name in LOADERS
    body = choosing_body(choices, words, _chosen_before(earlier, choices), may_answer=may_answer)
    label = await asked.text(body)
    choice = next((one for one in choices if one.label == label), None)
    before = _said_before(earlier)
    if choice is None or lacks_address(choice, (words, *(before or ()))):
        return None
    if choice.arguments is not None:
        return _made(choice.tool.name, choice.arguments)
    if not choice.tool.parameters.get("properties"):
        return _made(choice.tool.name, {})
    text = await asked.text(arguments_body(choice.tool, words, before))
    if borrowed(choice.tool, _object(text), (words, *(before or ()))):
        return None
    return ToolCall(id=_new_id(), name=choice.tool.name, arguments=text)


def _made(name: str, arguments: Mapping[str, object]) -> ToolCall:
    return ToolCall(id=_new_id(), name=name, arguments=json.dumps(arguments, ensure_ascii=False))


def _new_id() -> str:
    return f"call_{secrets.token_hex(8)}"


def _loadable(tools: Sequence[ToolDefinition]) -> set[str]:
    """The groups that may be loaded."""
    loads = [tool for tool in tools if tool.name == _LOAD_TOOLS]
    return {choice.label for choice in choices_of(loads)}


def _calls(messages: Sequence[ChatMessage]) -> list[ToolCall]:
    return [call for message in messages for call in message.tool_calls]


def _results(messages: Sequence[ChatMessage]) -> list[str]:
    """The tools' results, without the marks around them."""
    names = {call.id: call.name for call in _calls(messages)}
    return [
        unmarked(message.content)
        for message in messages
        if message.role == "tool" and names.get(message.tool_call_id) not in LOADERS
    ]


def _settled(loads: Sequence[ToolCall]) -> set[str]:
    """The groups that were loaded for this message, or tried."""
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


def _chosen_before(earlier: Sequence[ChatMessage], choices: Sequence[ActionLabel]) -> tuple[str, str] | None:
    """The user's previous message, and the label of the tool that was used for it."""
    at = latest_user(earlier)
    if at < 0:
        return None
    used = [call.name for call in _calls(earlier[at:]) if call.name not in LOADERS]
    known = {choice.label for choice in choices}
    return earlier[at].content, used[0] if used and used[0] in known else ANSWER


def _said_before(earlier: Sequence[ChatMessage]) -> tuple[str, str] | None:
    at = latest_user(earlier)
    if at < 0:
        return None
    return earlier[at].content, earlier[-1].content if earlier[-1].role == "assistant" else ""


@dataclass(slots=True)
class _Asked:
    """Asks the model questions before the answer, and counts their tokens."""

    client: DirectClient
    deadline: float
    prompt_tokens: int = 0
    completion_tokens: int = 0

    async def text(self, body: Mapping[str, Any]) -> str:
        """The model's whole answer to one question."""
        parts: list[str] = []
        async with aclosing(self.client.complete(body, deadline=self.deadline, retries=0)) as items:
            async for item in items:
                if isinstance(item, TextDelta):
                    parts.append(item.text)
                elif isinstance(item, LlmFinished):
                    self.prompt_tokens += item.prompt_tokens
                    self.completion_tokens += item.completion_tokens
        return "".join(parts).strip()

    def added_to(self, finished: LlmFinished) -> LlmFinished:
        return replace(
            finished,
            prompt_tokens=finished.prompt_tokens + self.prompt_tokens,
            completion_tokens=finished.completion_tokens + self.completion_tokens,
        )
