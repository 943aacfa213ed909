"""A task node: a whole agent loop inside one node, with a judge, a shared conversation and durable turns.

Covers: pipeline/agent/task_loop.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from pipeline.agent.loops import DOOM_WORDS, STALL_WORDS
from pipeline.agent.sent_files import sent_files
from pipeline.agent.task import TASK_CHANNELS, between_tasks, task_node
from pipeline.domain.chat import ToolCall, ToolDefinition
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import ModelUnavailable
from pipeline.domain.files import StoredFile
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.spec import EdgeSpec, GraphSpec, NodeSpec, OnSuccess
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.outcome import RunOutcome
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.context import RunContext
from pipeline.runtime.ports import ToolResult
from pipeline.runtime.scope import TurnScope
from pipeline.runtime.settings import PipelineSettings
from tests.support.contexts import CountedBudgets, Watched, context
from tests.support.graph_log import MemoryRunLog
from tests.support.verdicts import verdict

WINDOW = PipelineSettings(context_tokens=32_000, system_prompt="You are Parlour.")


class Library:
    """A gate with one tool that always answers the same."""

    def __init__(self, content: str = "42 pages", *files: StoredFile) -> None:
        self.content = content
        self.files = files
        self.proposed: list[ToolCall] = []

    async def prepare(self, _groups: Sequence[str], _scope: TurnScope) -> None:
        return None

    def offered(self, groups: Sequence[str], _scope: TurnScope) -> tuple[ToolDefinition, ...]:
        tool = ToolDefinition(name="look", description="Looks.", parameters={"type": "object"})
        return (tool,) if "library" in groups else ()

    async def propose(self, call: ToolCall, _groups: Sequence[str], _scope: TurnScope) -> ToolResult:
        if call.name == "load_tools":
            return ToolResult(content="loaded", groups=tuple(json.loads(call.arguments)["groups"]))
        self.proposed.append(call)
        return ToolResult(content=self.content, files=self.files)


def sets(**outputs: Any) -> ScriptedAnswer:
    """The model sets outputs."""
    calls = [
        ToolCall(id=f"c{at}", name="set_output", arguments=json.dumps({"key": key, "value": value}))
        for at, (key, value) in enumerate(outputs.items())
    ]
    return ScriptedAnswer.calling(*calls)


def looks(*at: int) -> ScriptedAnswer:
    """The model looks at places."""
    calls = [ToolCall(id=f"c{one}", name="look", arguments=f'{{"at": {one}}}') for one in at]
    return ScriptedAnswer.calling(*calls)


def graph_of(*nodes: tuple[str, NodeSpec[RunContext]], **given: Any) -> GraphSpec[RunContext]:
    """Nodes one after the other."""
    names = [name for name, _ in nodes]
    edges = tuple(EdgeSpec(source=one, target=other, when=OnSuccess()) for one, other in pairwise(names))
    return GraphSpec(
        name="tasks", entry=names[0], nodes=dict(nodes), edges=edges, channels=TASK_CHANNELS, **given
    )


async def ran(
    graph: GraphSpec[RunContext], llm: ScriptedLlm, *, log: MemoryRunLog | None = None, **given: Any
) -> RunOutcome:
    executor = Executor(graph, clock=ManualClock(), phase=between_tasks)
    around = context("What is in the library?", llm=llm, settings=WINDOW, **given)
    return await executor.run({}, around, log=log or MemoryRunLog())


async def one(llm: ScriptedLlm, tools: Library | None = None, **given: Any) -> RunOutcome:
    """A run of one task node with the output `found`."""
    node = task_node("Find it.", ("found",), groups=("library",), **given)
    return await ran(graph_of(("find", node)), llm, tools=tools or Library())


def texts(llm: ScriptedLlm, call: int = -1) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in llm.requests[call].messages]


async def test_a_node_ends_when_its_outputs_are_set() -> None:
    llm, library = ScriptedLlm([looks(1), sets(found="42 pages")]), Library()
    outcome = await one(llm, library)
    assert outcome.status == "completed"
    assert outcome.state["found"] == "42 pages"
    assert [call.arguments for call in library.proposed] == ['{"at": 1}']
    assert [tool.name for tool in llm.requests[0].tools] == ["look", "set_output"]
    assert ("tool", "42 pages") in texts(llm)


async def test_what_is_said_called_shown_and_kept_is_without_configured_secrets() -> None:
    word, log, watched, library = "opensesame", MemoryRunLog(), Watched(), Library()
    look = ToolCall(id="c1", name="look", arguments=json.dumps({"at": word}))
    llm = ScriptedLlm([ScriptedAnswer.calling(look, text=f"I try {word} now."), sets(found=f"It is {word}.")])
    node = task_node("Find it.", ("found",), groups=("library",), answer="found")
    around = {"tools": library, "redactor": Redactor(lambda: (word,)), "on_text": watched.on_text}
    outcome = await ran(graph_of(("find", node)), llm, log=log, **around)
    assert watched.text == outcome.state["agent"]["answer"] == "It is [REDACTED]."
    assert word not in f"{library.proposed}{log.records}{outcome.state}"


@pytest.mark.parametrize("isolated", [False, True])
async def test_the_files_of_its_tools_are_in_the_state_once(isolated: bool) -> None:
    chart = StoredFile(id="a" * 64, kind="image", mime="image/png", size=9, name="chart.png")
    llm = ScriptedLlm([looks(1, 2), sets(found="42 pages"), looks(3), sets(more="a")])
    nodes = [
        (name, task_node("Find it.", (output,), groups=("library",), isolated=isolated))
        for name, output in (("find", "found"), ("again", "more"))
    ]
    outcome = await ran(graph_of(*nodes), llm, tools=Library("42 pages", chart))
    assert sent_files(outcome.state) == (chart,)
    assert outcome.state["tasks"]["again"]["sends"][0]["name"] == "chart.png"


async def test_a_text_that_is_json_represents_what_it_says() -> None:
    outcome = await one(ScriptedLlm([sets(found='["a", {"n": 1}]')]))
    assert outcome.state["found"] == ("a", {"n": 1})


async def test_feedback_of_the_judge_reaches_the_model_as_the_users_words() -> None:
    llm = ScriptedLlm()
    llm.add("I have looked.", sets(found="yes"))
    outcome = await one(llm)
    assert outcome.status == "completed"
    role, words = texts(llm)[-1]
    assert role == "user"
    assert words.startswith("[Judge feedback]: Missing output keys: found")


async def test_criteria_are_judged_by_the_model_and_a_retry_goes_back() -> None:
    llm = ScriptedLlm([sets(found="one")])
    llm.add(verdict("RETRY", 0.9, "name two"), sets(found="two"))
    llm.add(verdict("ACCEPT", 0.8, "fine"))
    outcome = await one(llm, criteria="two are named")
    assert outcome.state["found"] == "two"
    assert ("user", "[Judge feedback]: name two") in texts(llm, 2)
    assert outcome.state["tasks"]["find"] == {"verdict": "ACCEPT", "confidence": 0.8}
    assert llm.requests[1].tools == ()


async def test_a_judge_that_fails_accepts_with_half_confidence() -> None:
    llm = ScriptedLlm([sets(found="one"), ScriptedAnswer(error=ModelUnavailable("down"))])
    outcome = await one(llm, criteria="two are named")
    assert outcome.state["tasks"]["find"] == {"verdict": "ACCEPT", "confidence": 0.5}


async def test_an_escalation_fails_the_node_in_the_judges_words() -> None:
    llm = ScriptedLlm([sets(found="one")])
    llm.add(verdict("ESCALATE", 1, "a person has to decide"))
    outcome = await one(llm, criteria="two are named")
    assert outcome.status == "failed"
    assert outcome.error is not None
    assert outcome.error.message == "Judge escalated: a person has to decide"
    assert outcome.error.permanent


@pytest.mark.parametrize("arguments", ["", "{", "[]", '{"key": "found"}', '{"key": "found", "value": NaN}'])
async def test_an_output_that_cannot_be_read_is_said_to_the_model(arguments: str) -> None:
    bad = ScriptedAnswer.calling(ToolCall(id="c", name="set_output", arguments=arguments))
    llm = ScriptedLlm([bad, sets(found="yes")])
    assert (await one(llm)).status == "completed"
    assert any(role == "tool" and words.startswith("Not set:") for role, words in texts(llm))


async def test_an_undeclared_output_is_refused_by_name() -> None:
    llm = ScriptedLlm([sets(secret="x"), sets(found="yes")])
    outcome = await one(llm)
    assert "secret" not in outcome.state
    refused = [words for role, words in texts(llm) if role == "tool"]
    assert refused == ["Not set: there is no output 'secret'. The outputs are: found."]


async def test_more_than_fifteen_calls_of_a_turn_are_discarded_openly() -> None:
    llm, library = ScriptedLlm([looks(*range(17)), sets(found="yes")]), Library()
    await one(llm, library)
    assert len(library.proposed) == 15
    results = [words for role, words in texts(llm) if role == "tool"]
    assert len(results) == 17
    assert [words.startswith("Discarded:") for words in results] == [False] * 15 + [True] * 2


async def test_saying_the_same_three_times_fails_the_node() -> None:
    outcome = await one(ScriptedLlm([ScriptedAnswer.of("Working on it.")] * 3))
    assert outcome.error is not None
    assert outcome.error.message == STALL_WORDS


async def test_the_third_identical_call_is_not_made_and_the_fifth_ends_the_node() -> None:
    llm, library = ScriptedLlm([looks(1)] * 5), Library()
    outcome = await one(llm, library)
    assert len(library.proposed) == 2
    assert "Not done: this is the same call" in texts(llm)[-1][1]
    assert outcome.error is not None
    assert outcome.error.message == DOOM_WORDS


async def test_a_node_that_is_never_done_ends_after_fifty_turns() -> None:
    llm = ScriptedLlm([ScriptedAnswer.of(f"Thought {number}.") for number in range(60)])
    outcome = await one(llm)
    assert len(llm.requests) == 50
    assert outcome.error is not None
    assert "50 turns" in outcome.error.message


def two_tasks(**given: Any) -> GraphSpec[RunContext]:
    second = given.pop("second", {})
    return graph_of(
        ("gather", task_node("Gather.", ("sources",))),
        ("write", task_node("Write.", ("report",), answer="report", **second)),
        **given,
    )


async def test_one_conversation_runs_through_the_nodes_with_a_marked_transition() -> None:
    llm = ScriptedLlm([sets(sources="tea"), sets(report="Tea is a drink.")])
    outcome = await ran(two_tasks(), llm)
    said = texts(llm)
    assert [role for role, _ in said] == ["system", "user", "assistant", "tool", "user"]
    assert said[1] == ("user", "What is in the library?")
    assert "PHASE TRANSITION: gather → write" in said[-1][1]
    assert '- sources: "tea"' in said[-1][1]
    assert outcome.state["agent"]["answer"] == "Tea is a drink."


async def test_the_prompt_has_identity_narrative_and_focus() -> None:
    llm = ScriptedLlm([sets(sources="tea"), sets(report="Tea.")])
    await ran(two_tasks(), llm)
    first, second = texts(llm, 0)[0][1], texts(llm, 1)[0][1]
    assert first.startswith("You are Parlour.\n\n# Current focus\nGather.")
    assert "Phases completed: gather" in second
    assert '- sources: "tea"' in second
    assert "Write." in second
    assert "Gather." not in second


@pytest.mark.parametrize(
    "given",
    [{"conversation": "isolated"}, {"second": {"isolated": True}}],
    ids=["isolated graph", "isolated node"],
)
async def test_an_isolated_node_sees_the_values_and_not_the_conversation(given: dict[str, Any]) -> None:
    llm = ScriptedLlm([sets(sources="tea"), sets(report="Tea.")])
    await ran(two_tasks(**given), llm)
    said = texts(llm)
    assert [role for role, _ in said] == ["system", "user"]
    assert said[1][1].startswith("What is in the library?")
    assert '- sources: "tea"' in said[1][1]


async def test_the_session_before_the_message_is_shown_once() -> None:
    llm = ScriptedLlm([sets(found="yes")])
    await ran(graph_of(("find", task_node("Find.", ("found",)))), llm, history=("Hi", "Hello"))
    assert texts(llm)[1:] == [("user", "Hi"), ("assistant", "Hello"), ("user", "What is in the library?")]


async def test_a_run_that_was_cut_off_asks_the_model_nothing_twice() -> None:
    log, library = MemoryRunLog(), Library()
    graph = graph_of(("find", task_node("Find it.", ("found",), groups=("library",))))
    llm = ScriptedLlm([looks(1), ScriptedAnswer.of("Hm."), sets(found="yes")])
    whole = await ran(graph, llm, log=log, tools=library)
    done = [at for at, record in enumerate(log.records) if _is_done(record, "turn 2")]
    again = ScriptedLlm([sets(found="yes")])
    executor = Executor(graph, clock=ManualClock(), phase=between_tasks)
    resumed = await executor.resume(
        log.cut(done[0] + 1).records,
        context("What is in the library?", llm=again, settings=WINDOW, tools=library),
        log=MemoryRunLog(),
    )
    assert len(again.requests) == 1
    assert again.requests[0].messages == llm.requests[2].messages
    assert resumed.state == whole.state


async def test_old_results_give_way_when_the_window_is_full() -> None:
    llm = ScriptedLlm([looks(1), looks(2), sets(found="yes")])
    small = PipelineSettings(context_tokens=3_000, max_answer_tokens=200)
    node = task_node("Find it.", ("found",), groups=("library",))
    executor = Executor(graph_of(("find", node)), clock=ManualClock(), phase=between_tasks)
    await executor.run({}, context("x", llm=llm, settings=small, tools=Library("page " * 1_000)))
    results = [words for role, words in texts(llm) if role == "tool"]
    assert results[0] == "[A result of 5000 characters that is no longer shown.]"
    assert results[1].startswith("page page")


async def test_without_a_task_node_the_phase_hook_writes_nothing() -> None:
    llm = ScriptedLlm()

    async def plain(_state: State, _context: RunContext) -> NodeResult:
        return NodeResult(update={"x": 1})

    graph = GraphSpec(
        name="plain", entry="a", nodes={"a": plain, "b": plain}, edges=(EdgeSpec(source="a", target="b"),)
    )
    outcome = await ran(graph, llm)
    assert dict(outcome.state) == {"x": 1}


def test_the_answer_must_be_an_output_that_is_always_set() -> None:
    with pytest.raises(ValueError, match="none of the outputs"):
        task_node("Write.", ("report",), answer="text")
    with pytest.raises(ValueError, match="none of the outputs"):
        task_node("Write.", ("report", "x"), nullable=("report",), answer="report")


def _is_done(record: Any, key: str) -> bool:
    return [record["do"], record.get("key"), record.get("state")] == ["effect", key, "done"]


async def test_an_answer_of_the_model_that_breaks_off_is_counted_all_the_same() -> None:
    budgets = CountedBudgets()
    broken = ScriptedAnswer(chunks=("Half an answer",), error=ModelUnavailable("gone"))
    empty = ScriptedAnswer(prompt_tokens=40)
    for answer in (broken, empty):
        node = task_node("Find it.", ("found",))
        outcome = await ran(graph_of(("find", node)), ScriptedLlm([answer]), budgets=budgets)
        assert outcome.status == "failed"
    assert len(budgets.tokens) == 2
    assert budgets.tokens[0] > 0
    assert budgets.tokens[1] == 40
