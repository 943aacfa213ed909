"""What the model is sent over a long conversation with tools, compaction and a restart, byte for byte.

The expected requests come from a small model of the rules in this file, which shares no code with what it
judges.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from gateway.storage.ports import Record
from pipeline.domain.chat import ChatMessage, ToolCall, ToolDefinition
from pipeline.domain.clock import SystemClock
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.spec import GraphSpec
from pipeline.history.view import LEFT_OUT
from pipeline.llm.client import LlmRequest
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.runtime.context import RunContext
from pipeline.runtime.ports import ToolResult
from pipeline.runtime.scope import TurnScope
from pipeline.topologies import conversation_graph
from tests.support.harness import GatewayHarness, open_gateway

MESSAGES = 100
"""Of the user's; with the answers, 200."""
RESTART_AT = 57
WINDOW, ANSWER = 2_400, 200
OPERATORS = "You are Parlour. Answer briefly."
SYSTEM = (
    f"{OPERATORS} Today is Tuesday, 2026-11-24. The user's time zone is UTC. "
    "Your name is Parlour. If you are asked who you are or who made you, "
    "say that you are Parlour, a chat bot."
)
TOOL = ToolDefinition(
    name="look_up", description="Look something up.", parameters={"type": "object", "properties": {}}
)
SETTINGS = (
    f"llm.context_tokens={WINDOW}",
    f"llm.max_tokens={ANSWER}",
    f'bot.system_prompt="{OPERATORS}"',
    'bot.time_zone="UTC"',
    "agent.titles=false",
    "agent.summarise_above=10000",
    "limits.messages_per_minute=0",
)


class _FromNoon(SystemClock):
    """The machine's clock, set to noon of one day, so that no test runs over midnight."""

    def __init__(self) -> None:
        noon = datetime(2026, 11, 24, 12, tzinfo=UTC).timestamp()
        ahead = SystemClock.now() - noon
        self.now = lambda: SystemClock.now() - ahead


class OneTool:
    """A gate that lets its one tool through."""

    async def prepare(self, _groups: Sequence[str], _scope: TurnScope) -> None:
        return None

    def offered(self, _groups: Sequence[str], _scope: TurnScope) -> tuple[ToolDefinition, ...]:
        return (TOOL,)

    async def propose(self, call: ToolCall, _groups: Sequence[str], _scope: TurnScope) -> ToolResult:
        return ToolResult(content=_result(int(call.id.removeprefix("call-"))))


def _graph() -> GraphSpec[RunContext]:
    """The conversation, with that tool."""
    graph, gate = conversation_graph(), OneTool()

    def given(run: Any) -> Any:
        async def node(state: State, context: RunContext) -> NodeResult:
            result: NodeResult = await run(state, replace(context, tools=gate))
            return result

        return node

    nodes = {name: replace(spec, run=given(spec.run)) for name, spec in graph.specs.items()}
    return replace(graph, nodes=nodes)


# ---------------------------------------------------------------- what is said


def _asked(number: int) -> str:
    return f"Message {number}: {'please tell me more ' * (number * 7 % 11)}".strip()


def _looks_up(number: int) -> bool:
    return number % 3 == 1


def _call(number: int) -> ToolCall:
    return ToolCall(id=f"call-{number}", name="look_up", arguments=f'{{"q": {number}}}')


def _result(number: int) -> str:
    return f"result {number}\n" + "a line of it\n" * (number * 5 % 17)


def _answer(number: int) -> str:
    return f"Answer {number}: " + "there is more " * (number * 3 % 13)


# ---------------------------------------------------------------- what the model is to be sent


def _user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text.strip())


def _tokens(*messages: ChatMessage) -> int:
    """Three characters a token, four for each message, and eight for each call: all of it is ASCII."""

    def of(text: str) -> int:
        return (len(text) + 2) // 3

    return sum(
        of(message.content) + 4 + sum(of(call.name) + of(call.arguments) + 8 for call in message.tool_calls)
        for message in messages
    )


def _brief(message: ChatMessage) -> ChatMessage:
    if message.role != "tool":
        return message
    size, lines = len(message.content), message.content.count("\n")
    line = f"[Summary: Returned {size} bytes ({lines} lines) of plain text]"
    return replace(message, content=line) if len(line) < size else message


@dataclass
class Reference:
    """The conversation as the rules have it, and every request that it leads to."""

    summary: str = ""
    turns: list[list[ChatMessage]] = field(default_factory=list)
    requests: list[tuple[ChatMessage, ...]] = field(default_factory=list)
    """Of those for a summary, the second message alone."""
    script: list[ScriptedAnswer] = field(default_factory=list)
    summaries: int = 0

    def say(self, number: int) -> None:
        said, turn = _user(_asked(number)), list[ChatMessage]()
        self._compact(said)
        if _looks_up(number):
            self._request(said, turn)
            words, call = f"I look it up, {number}.", _call(number)
            self.script.append(replace(ScriptedAnswer.of(words), calls=(call,)))
            turn.append(ChatMessage(role="assistant", content=words, tool_calls=(call,)))
            turn.append(ChatMessage(role="tool", content=_result(number), tool_call_id=call.id))
        self._request(said, turn)
        self.script.append(ScriptedAnswer.of(_answer(number)))
        self.turns.append([said, *turn, ChatMessage(role="assistant", content=_answer(number).strip())])

    def _as_sent(self) -> list[list[ChatMessage]]:
        stale = len(self.turns) - 4
        return [
            [_brief(message) for message in turn] if index < stale else turn
            for index, turn in enumerate(self.turns)
        ]

    def _before(self) -> list[ChatMessage]:
        words = f"[Previous conversation summary: {self.summary}]"
        return [ChatMessage(role="system", content=words)] if self.summary else []

    def _room(self) -> int:
        tool = (len(TOOL.name + TOOL.description + str(TOOL.parameters)) + 2) // 3
        return WINDOW - ANSWER - tool - _tokens(ChatMessage(role="system", content=SYSTEM))

    def _compact(self, said: ChatMessage) -> None:
        """At 70 % of the room: the newest turns within 50 % stay, beside the longest summary."""
        room, turns = self._room(), self._as_sent()
        newest = _tokens(said) - 4
        if newest + _tokens(*self._before(), *chain(*turns)) < 0.7 * room:
            return
        longest = min(500, int(room * 0.5 / 3))
        left = (
            0.5 * room
            - newest
            - longest
            - _tokens(ChatMessage(role="system", content="[Previous conversation summary: ]"))
        )
        old = len(turns)
        while old and (left := left - _tokens(*turns[old - 1])) >= 0:
            old -= 1
        lines = "\n".join(_line(message) for turn in self.turns[:old] for message in turn)
        if self.summary:
            lines = f"Earlier summary:\n{self.summary}\n\nWhat was said since:\n{lines}"
        self.requests.append((ChatMessage(role="user", content=lines),))
        self.summaries += 1
        self.summary = f"Summary {self.summaries} of what was said."
        self.script.append(ScriptedAnswer.of(self.summary))
        del self.turns[:old]

    def _request(self, said: ChatMessage, exchange: list[ChatMessage]) -> None:
        system = ChatMessage(role="system", content=SYSTEM)
        history = chain(*self._as_sent())
        self.requests.append((system, *self._before(), *history, said, *exchange))


def _line(message: ChatMessage) -> str:
    words = " ".join(_brief(message).content.split())
    used = f" (uses {message.tool_calls[0].name})" if message.tool_calls else ""
    return f"{message.role.capitalize()}: {words}{used}"


# ------------------------------------------------------------ the conversation


async def _talk(harness: GatewayHarness, numbers: range) -> None:
    for number in numbers:
        accepted = await harness.channel.say(_asked(number), native_id=f"n{number}")
        reply = await harness.channel.reply(accepted.message_id)
        assert reply.text.endswith(_answer(number).strip())


def _seen(requests: Sequence[LlmRequest]) -> list[tuple[ChatMessage, ...]]:
    """Requests in the form of the reference."""
    return [request.messages if request.tools else request.messages[1:] for request in requests]


async def test_200_messages_with_tools_compaction_and_a_restart_are_sent_as_the_rules_say(
    tmp_path: Path,
) -> None:
    expected = Reference()
    requests, summaries = list[LlmRequest](), list[Record]()
    for numbers in (range(RESTART_AT), range(RESTART_AT, MESSAGES)):
        expected.script = []
        for number in numbers:
            expected.say(number)
        llm = ScriptedLlm(expected.script)
        async with open_gateway(tmp_path, *SETTINGS, llm=llm, graph=_graph(), clock=_FromNoon()) as harness:
            async with asyncio.timeout(120):
                await _talk(harness, numbers)
            assert not llm.script
            requests += llm.requests
            summaries = await harness.records("summary")

    seen = _seen(requests)
    for index, (was, should) in enumerate(zip(seen, expected.requests, strict=False)):
        assert was == should, f"request {index}"
    assert len(seen) == len(expected.requests)
    assert [record.body["text"] for record in summaries] == [
        f"Summary {number} of what was said." for number in range(1, expected.summaries + 1)
    ]
    assert expected.summaries >= 4
    _keep_the_rules([request for request in requests if request.tools])


def _keep_the_rules(requests: Sequence[LlmRequest]) -> None:
    """What must hold of every request, whatever the reference says."""
    for request in requests:
        messages = request.messages
        assert _tokens(*messages) + ANSWER <= WINDOW
        assert sum(message.content.startswith("[Previous") for message in messages) <= 1
        assert LEFT_OUT not in {message.content for message in messages}
        asked = [message.content for message in messages if message.role == "user"]
        numbers = [int(text.split()[1].rstrip(":")) for text in asked]
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        waiting: list[str] = []
        for message in messages:
            if message.role == "tool":
                assert message.tool_call_id == waiting.pop(0)
            else:
                assert not waiting
                waiting = [call.id for call in message.tool_calls]
        assert not waiting


async def test_a_summary_outlives_the_process_and_is_not_made_twice(tmp_path: Path) -> None:
    expected = Reference()
    number = 0
    while not expected.summaries:
        expected.say(number)
        number += 1
    llm = ScriptedLlm(expected.script)
    async with open_gateway(tmp_path, *SETTINGS, llm=llm, graph=_graph(), clock=_FromNoon()) as harness:
        await _talk(harness, range(number))
    expected.script = []
    expected.say(number)
    llm = ScriptedLlm(expected.script)
    async with open_gateway(tmp_path, *SETTINGS, llm=llm, graph=_graph(), clock=_FromNoon()) as harness:
        await _talk(harness, range(number, number + 1))
        log = [record.body["text"] for record in await harness.records("user")]
    assert _seen(llm.requests) == expected.requests[-len(llm.requests) :]
    assert log == [_asked(one) for one in range(number + 1)]
