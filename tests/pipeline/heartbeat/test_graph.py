"""The heartbeat's graph alone: its shape, its cycles, and a run that is cut off and resumed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.graph.definition.spec import END
from pipeline.graph.execution.executor import Executor
from pipeline.heartbeat.graph import HEARTBEAT, MAX_CYCLES, SUMMARY_CHARS, WAKE, heartbeat_graph
from pipeline.heartbeat.prompt import is_silent
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.topologies import shipped_graphs
from tests.support.contexts import context

_WAKE: dict[str, Any] = {
    "sources": [],
    "instructions": "Be brief.",
    "projects": ["Garden"],
    "tasks": [],
    "zone": "UTC",
    "whom": "Ann",
}
_KNOWN = {"status": "running", "cycle": 0, "summary": "", "blocker": "", "said": ""}


async def ran(llm: ScriptedLlm, blocker: str = "", **wake: Any) -> dict[str, Any]:
    clock = ManualClock()
    inputs = {WAKE: {**_WAKE, **wake}, HEARTBEAT: {**_KNOWN, "blocker": blocker}}
    run = replace(context(llm=llm, text="It is time."), clock=clock)
    outcome = await Executor(heartbeat_graph(lambda: ["default"]), clock=clock).run(inputs, run)
    outcome.raise_for_failure()
    return dict(outcome.state[HEARTBEAT])


def tagged(tag: str, inner: str = "", words: str = "Words.") -> ScriptedAnswer:
    return ScriptedAnswer.of(f"{words} <AGENT_{tag}>{inner}</AGENT_{tag}>")


def test_the_graph_is_shipped_with_its_nodes_and_edge() -> None:
    graph = shipped_graphs()["heartbeat"]()
    assert graph.entry == "intake"
    assert set(graph.nodes) == {"intake", "heartbeat"}
    edges = [(edge.source, set(edge.targets())) for edge in graph.edges]
    assert edges == [("intake", {"heartbeat"}), ("heartbeat", {"heartbeat", END})]


@pytest.mark.parametrize(
    ("answer", "status", "blocker"),
    [
        (tagged("DONE", "<KEY_RESULT>x</KEY_RESULT>"), "done", ""),
        (tagged("BLOCKED", "<BLOCKER_REASON>no key</BLOCKER_REASON>"), "blocked", "no key"),
        (ScriptedAnswer.of("No tag at all."), "done", ""),
    ],
)
async def test_done_and_blocked_end_after_one_cycle(
    answer: ScriptedAnswer, status: str, blocker: str
) -> None:
    found = await ran(ScriptedLlm([answer]))
    assert (found["status"], found["cycle"], found["blocker"]) == (status, 1, blocker)


async def test_a_cycle_that_is_not_done_is_followed_by_another_up_to_ten() -> None:
    report = f"<STATUS_REPORT>{'r' * 700}</STATUS_REPORT>"
    llm = ScriptedLlm([tagged("CONTINUE", report) for _ in range(MAX_CYCLES + 3)])
    found = await ran(llm)
    assert (found["status"], found["cycle"]) == ("running", MAX_CYCLES)
    assert len(llm.requests) == MAX_CYCLES
    assert 0 < len(found["summary"]) <= SUMMARY_CHARS


async def test_a_cycle_sees_the_report_and_not_the_exchange_of_the_one_before() -> None:
    first = tagged("CONTINUE", "<STATUS_REPORT>half done</STATUS_REPORT>", words="Secret thoughts.")
    llm = ScriptedLlm([first, tagged("DONE")])
    await ran(llm)
    assert len(llm.requests[1].messages) == 2
    words = llm.requests[1].messages[-1].content
    assert "half done" in words
    assert "Secret thoughts" not in words


async def test_the_prompt_has_what_the_agent_needs_to_know() -> None:
    llm = ScriptedLlm([tagged("DONE")])
    await ran(llm, tasks=["water the plants"])
    words = llm.requests[0].messages[-1].content
    for part in (
        "It is time.",
        "Be brief.",
        "- Garden",
        "- water the plants",
        "- default",
        "sent to Ann",
        "UTC",
    ):
        assert part in words


async def test_what_blocked_the_last_heartbeat_is_in_the_prompt() -> None:
    llm = ScriptedLlm([tagged("DONE")])
    await ran(llm, blocker="no key")
    assert "What blocked the cycle or the heartbeat before: no key" in llm.requests[0].messages[-1].content


@pytest.mark.parametrize(
    ("answer", "silent"),
    [("NOTHING", True), (" nothing. ", True), ("**NOTHING**", True), ("", True), ("Nothing new", False)],
)
def test_an_agent_can_say_that_there_is_nothing_to_say(answer: str, *, silent: bool) -> None:
    assert is_silent(answer) is silent
