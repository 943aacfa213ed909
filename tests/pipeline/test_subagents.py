"""Sub-agents: side by side, with their own tools, through the same gate, and never too many."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import Any, Literal

import pytest

from parlour.testing.fakes import MemoryFiles
from pipeline.domain.chat import ToolCall, ToolDefinition
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError
from pipeline.domain.events import (
    ApprovalRequired,
    SubAgentCancelled,
    SubAgentCompleted,
    SubAgentFailed,
    SubAgentProgress,
    SubAgentSpawned,
)
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.execution.executor import Executor
from pipeline.llm.client import LlmItem, LlmRequest
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.context import RunContext
from pipeline.runtime.null_services import NullBudgets, NullSkills
from pipeline.runtime.ports import Allowance, ToolResult
from pipeline.runtime.scope import TurnScope
from pipeline.runtime.services import PipelineServices
from pipeline.runtime.settings import PipelineSettings
from pipeline.subagents import MAX_SECONDS, SubAgents
from pipeline.tools.gate import RegistryGate
from pipeline.tools.registry import FixedGroup, ToolRegistry
from pipeline.tools.returned_files import ReturnedFiles
from pipeline.tools.tool import Tool, ToolFile, ToolOutput
from tests.support.contexts import Watched, context, scope
from tests.support.graph_log import MemoryRunLog
from tests.support.shields import shield

SETTINGS = PipelineSettings(context_tokens=32_000)


class Allowing:
    """A person who allows everything, and sees what is asked."""

    async def ask(self, scope: TurnScope, **asked: Any) -> Literal["allowed", "refused", "expired"]:
        await scope.send(
            ApprovalRequired(
                session_id=scope.session_id,
                message_id=scope.message_id,
                interaction_id=asked["action_id"],
                tool_name=asked["tool_name"],
                reasoning=asked["reasoning"],
                options=("Allow", "Deny"),
                timeout_s=60.0,
            )
        )
        return "allowed"


class Spent(NullBudgets):
    """Counts what is spent."""

    def __init__(self) -> None:
        self.tokens = 0

    async def spent(self, scope: TurnScope, *, tokens: int, cost: float) -> None:
        del scope, cost
        self.tokens += tokens


class ByTask:
    """Models that answer to one task each, so that the order of parallel requests does not count."""

    def __init__(self, **models: ScriptedLlm) -> None:
        self.models = models

    def stream(self, request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
        asked = next(message.content for message in request.messages if message.role == "user")
        return self.models[asked].stream(request)

    async def warm_up(self) -> None:
        """They are ready."""

    async def close(self) -> None:
        """They hold nothing."""

    def status(self) -> str:
        return "ready"


class Shop:
    """Everything around one call of `run_agents`."""

    def __init__(self, llm: Any = None, *, clock: ManualClock | None = None) -> None:
        self.watched = Watched()
        self.clock = clock or ManualClock()
        self.written: list[str] = []
        self.budgets = Spent()
        self.llm = llm or ScriptedLlm.echo()
        self.agents = SubAgents(
            llm=self.llm,
            services=lambda: self.around,
            registry=lambda: self.registry,
            clock=self.clock,
            settings=SETTINGS,
        )
        groups = (
            FixedGroup(name="files", description="Files.", fixed=(self._read(), self._write())),
            FixedGroup(name="notes", description="Notes.", fixed=()),
            self.agents,
        )
        self.registry = ToolRegistry(groups)
        self.gate = RegistryGate(
            registry=self.registry,
            shield=shield(clock=self.clock),
            approvals=Allowing(),
            skills=NullSkills(),
            clock=self.clock,
            timeout_s=60.0,
            files=ReturnedFiles(MemoryFiles(), Redactor(), max_bytes=1_000, most=9),
        )
        self.around = PipelineServices(tools=self.gate, budgets=self.budgets)

    async def call(
        self, *agents: dict[str, Any], log: MemoryRunLog | None = None, **given: Any
    ) -> ToolResult:
        """The result of one call, made from a node of a running graph."""
        results: list[ToolResult] = []
        call = ToolCall(id="c1", name="run_agents", arguments=json.dumps({"agents": list(agents)}))
        own = scope(self.watched, **given)

        async def node(_state: State, context: RunContext) -> NodeResult:
            results.append(await context.tools.propose(call, ("agents",), own))
            return NodeResult()

        graph = GraphSpec(name="parent", entry="node", nodes={"node": node}, edges=())
        await self.registry.load("agents", own)
        around = context(tools=self.gate, clock=self.clock)
        records = [] if log is None else log.records
        executor = Executor(graph, clock=self.clock)
        if records:
            outcome = await executor.resume(records, around, log=log)
        else:
            outcome = await executor.run({}, around, log=log)
        outcome.raise_for_failure()
        return results[0]

    def events(self, kind: type[Any]) -> list[Any]:
        """What watchers were shown of one kind."""
        return [event for event in self.watched.events if type(event) is kind]

    def _read(self) -> Tool:
        async def read(arguments: Any, _scope: TurnScope) -> ToolOutput:
            path = arguments.get("path")
            files = (ToolFile(data=path.encode(), name=path),) if path and path.endswith(".txt") else ()
            return ToolOutput(text=f"content of {path}", files=files)

        return Tool(
            definition=ToolDefinition(name="read", description="Reads.", parameters={"type": "object"}),
            group="files",
            run=read,
            reads_only=True,
        )

    def _write(self) -> Tool:
        async def write(arguments: Any, _scope: TurnScope) -> ToolOutput:
            self.written.append(arguments.get("path"))
            return ToolOutput(text="written")

        return Tool(
            definition=ToolDefinition(name="write", description="Writes.", parameters={"type": "object"}),
            group="files",
            run=write,
        )


async def until(condition: Callable[[], bool]) -> None:
    """Let others run until it holds."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


def asks(name: str, **arguments: Any) -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id="x", name=name, arguments=json.dumps(arguments)))


def agent(name: str, task: str, *groups: str) -> dict[str, Any]:
    return {"name": name, "task": task, "groups": list(groups)}


async def test_the_reports_come_back_together_in_the_order_of_the_agents() -> None:
    shop = Shop()
    result = await shop.call(agent("a", "count sheep"), agent("b", "count stars"))
    assert result.success
    first, second = result.content.index("## a: completed"), result.content.index("## b: completed")
    assert first < result.content.index("You said: count sheep") < second
    assert [event.name for event in shop.events(SubAgentSpawned)] == ["a", "b"]
    assert {event.name for event in shop.events(SubAgentCompleted)} == {"a", "b"}


async def test_the_files_of_their_tools_are_those_of_the_call() -> None:
    models = {
        name: ScriptedLlm([asks("read", path=f"{name}.txt"), ScriptedAnswer.of("done")])
        for name in ("one", "two")
    }
    shop = Shop(ByTask(**models))
    result = await shop.call(agent("a", "one", "files"), agent("b", "two", "files"))
    assert sorted(file.name for file in result.files) == ["one.txt", "two.txt"]


async def test_they_work_side_by_side() -> None:
    meet = asyncio.Event()
    first = ScriptedLlm([ScriptedAnswer(chunks=("first",), gate=meet)])

    class Opening(ScriptedLlm):
        async def stream(self, request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
            meet.set()
            async for item in super().stream(request):
                yield item

    shop = Shop(ByTask(one=first, two=Opening()))
    async with asyncio.timeout(10):
        result = await shop.call(agent("a", "one"), agent("b", "two"))
    assert "first" in result.content


async def test_more_than_ten_are_refused_and_none_is_started() -> None:
    shop = Shop()
    result = await shop.call(*(agent(f"a{number}", "work") for number in range(11)))
    assert not result.success
    assert "10" in result.content
    assert shop.events(SubAgentSpawned) == []
    assert not (await shop.call()).success


async def test_each_has_its_own_conversation_and_the_tools_it_was_given() -> None:
    llm = ScriptedLlm([asks("read", path="a.txt"), ScriptedAnswer.of("It says hello.")])
    shop = Shop(llm)
    result = await shop.call(agent("reader", "read a.txt", "files"))
    assert "It says hello." in result.content
    assert [tool.name for tool in llm.requests[0].tools] == ["read", "write"]
    said = [message.content for message in llm.requests[1].messages if message.role != "system"]
    assert said[0] == "read a.txt"
    assert "content of a.txt" in said[-1]
    assert "sub-agent called reader" in llm.requests[0].messages[0].content


async def test_a_sub_agent_has_no_sub_agents_and_no_notes() -> None:
    for group in ("agents", "notes"):
        shop = Shop()
        result = await shop.call(agent("a", "work", group))
        assert not result.success
        assert "turned off" in result.content
        assert len(shop.events(SubAgentFailed)) == 1


async def test_without_a_group_it_has_no_tool_and_cannot_load_one() -> None:
    llm = ScriptedLlm([asks("load_tools", groups=["files"]), ScriptedAnswer.of("done")])
    await Shop(llm).call(agent("a", "work"))
    assert llm.requests[0].tools == ()
    assert "Unknown tool" in llm.requests[1].messages[-1].content


async def test_its_calls_pass_the_same_gate_and_questions_bear_its_name() -> None:
    shop = Shop(ScriptedLlm([asks("write", path="b.txt"), ScriptedAnswer.of("written")]))
    await shop.call(agent("writer", "write b.txt", "files"))
    assert [event.tool_name for event in shop.events(ApprovalRequired)] == ["writer: write"]
    assert shop.written == ["b.txt"]


async def test_progress_comes_from_its_calls_at_most_every_few_seconds() -> None:
    shop = Shop(ScriptedLlm([*(asks("read", path=str(at)) for at in range(4)), ScriptedAnswer.of("done")]))
    await shop.call(agent("reader", "read", "files"))
    assert [event.status for event in shop.events(SubAgentProgress)] == ["Using “read”"]


async def test_one_that_fails_does_not_stop_the_others() -> None:
    shop = Shop(ByTask(bad=ScriptedLlm.from_spec("fail:unavailable"), good=ScriptedLlm.echo()))
    result = await shop.call(agent("a", "bad"), agent("b", "good"))
    assert result.success
    assert "## a: failed\nThe scripted model fails on purpose" in result.content
    assert "## b: completed\nYou said: good" in result.content
    assert [event.name for event in shop.events(SubAgentFailed)] == ["a"]


async def test_one_that_repeats_a_call_for_ever_is_stopped_and_heard_no_more() -> None:
    stubborn = ScriptedLlm([asks("read", path="a.txt")] * 5 + [ScriptedAnswer.of("never asked for")])
    shop = Shop(ByTask(one=stubborn))
    result = await shop.call(agent("a", "one", "files"))
    assert "kept making the same tool call" in result.content
    assert len(stubborn.requests) == 5


async def test_two_of_one_name_are_distinguished() -> None:
    result = await Shop().call(agent("a", "one"), agent("a", "two"))
    assert "## a: completed" in result.content
    assert "## a 2: completed" in result.content


async def test_stopping_the_turn_stops_them_all() -> None:
    never = asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("x",), gate=never), ScriptedAnswer(chunks=("y",), gate=never)])
    shop = Shop(llm)
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(shop.call(agent("a", "one"), agent("b", "two")))
        await until(lambda: len(llm.requests) == 2)
        turn.cancel()
    assert turn.cancelled()
    assert {event.name for event in shop.events(SubAgentCancelled)} == {"a", "b"}
    assert llm.cancelled == 2
    assert len(asyncio.all_tasks()) == 1


async def test_one_that_takes_too_long_is_stopped_and_said_so() -> None:
    clock = ManualClock()
    shop = Shop(ScriptedLlm([ScriptedAnswer(chunks=("x",), gate=asyncio.Event())]), clock=clock)
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(shop.call(agent("slow", "one")))
        await until(lambda: bool(shop.events(SubAgentSpawned)))
        await clock.advance(MAX_SECONDS + 1)
    assert "longer than 15 minutes" in turn.result().content


async def test_what_they_use_is_counted() -> None:
    shop = Shop()
    await shop.call(agent("a", "one"))
    assert shop.budgets.tokens > 0


async def test_what_they_call_and_report_is_without_configured_secrets() -> None:
    word = "opensesame"
    reported = ScriptedLlm([asks("write", path=f"{word}.txt"), ScriptedAnswer.of(f"It is {word}, written.")])
    shop = Shop(ByTask(tell=reported))
    shop.around = replace(shop.around, redactor=Redactor(lambda: (word,)))
    result = await shop.call(agent("a", "tell", "files"))
    assert shop.written == ["[REDACTED].txt"]
    assert word not in result.content
    assert not any(word in str(event) for event in shop.watched.events)


async def test_a_broken_store_is_not_taken_for_a_failed_agent() -> None:
    class Broken(Spent):
        async def allowance(self, _scope: TurnScope) -> Allowance:
            raise StorageError("the disk is full")

    shop = Shop()
    shop.around = replace(shop.around, budgets=Broken())
    (tool,) = await shop.agents.tools(scope())
    with pytest.raises(StorageError):
        await tool.run({"agents": [agent("a", "one"), agent("b", "two")]}, scope(shop.watched))


async def test_after_a_crash_in_the_middle_no_one_knows_and_nothing_runs_again() -> None:
    log, shop = MemoryRunLog(), Shop()
    await shop.call(agent("a", "one"), log=log)
    began = next(at for at, record in enumerate(log.records) if _began(record))
    again = Shop()
    result = await again.call(agent("a", "one"), log=log.cut(began + 1))
    assert not result.success
    assert "it is unknown whether it was done" in result.content
    assert again.events(SubAgentSpawned) == []


async def test_a_long_report_leaves_room_for_the_others() -> None:
    shop = Shop(ByTask(long=ScriptedLlm([ScriptedAnswer.of("word " * 5_000)]), short=ScriptedLlm.echo()))
    result = await shop.call(agent("a", "long"), agent("b", "short"))
    assert "…(cut)" in result.content
    assert "You said: short" in result.content


def _began(record: Any) -> bool:
    return [record["do"], record.get("key"), record.get("state")] == ["effect", "execute:c1", "began"]
