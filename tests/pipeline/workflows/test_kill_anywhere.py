"""A run that is cut off after any record and resumed ends as the uninterrupted one (hypothesis)."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipeline.workflows.run_record import WorkflowRun
from tests.pipeline.workflows.documents import Run, agent, approval, document, start, way
from tests.pipeline.workflows.test_broken_documents import random_document
from tests.support.graph_log import MemoryRunLog

_MOST_ANSWERS = 12
_MOST_CUTS = 25


async def _to_the_end(run: Run, record: WorkflowRun) -> WorkflowRun:
    """Answer the oldest approval again and again: each node by its id, the third time with reject."""
    answered: Counter[str] = Counter(
        str(plain.get("gate", {}).get("id", "")).rpartition("/")[2].partition(":")[0]
        for plain in run.log.records
        if plain is not None and plain["do"] == "answer"
    )
    for _ in range(_MOST_ANSWERS):
        if record.status != "paused":
            break
        gate = run.outcome.gates[0]
        answered[gate.node] += 1
        record = await run.answer(gate.node, "reject" if answered[gate.node] % 3 == 0 else "approve")
    return record


def _facts(run: Run, record: WorkflowRun) -> tuple[Any, ...]:
    """What does not depend on the order in which parallel branches end."""
    outputs = {node: record.state.get(node) for node in run.workflow.nodes}
    return record.status, Counter(run.ran), Counter(run.said.split("\n\n")), outputs


async def _cut(source: dict[str, Any]) -> bool:
    """Cut a run off at many of its records; False for one that does not complete."""
    whole = Run(source)
    expected = await _to_the_end(whole, await whole.begin())
    if expected.status != "completed":
        return False
    ends = range(1, len(whole.log.texts))
    for kept in ends[:: 1 + len(ends) // _MOST_CUTS]:
        again = Run(source)
        again.log = MemoryRunLog(whole.log.texts[:kept])
        record = await _to_the_end(again, await again.resume())
        assert _facts(again, record) == _facts(whole, expected), kept
    return True


@given(st.integers(0, 10**9))
@settings(max_examples=6, deadline=None)
async def test_a_random_document_with_random_answers(seed: int) -> None:
    assume(await _cut(random_document(random.Random(seed), 5)))


async def test_two_approvals_with_deferred_branches_beside_them() -> None:
    nodes = (
        start(),
        approval("one"),
        approval("two"),
        agent("a", userPrompt="a"),
        agent("b", userPrompt="b"),
    )
    routes = [way("start > one"), way("start > a"), way("start > two"), way("a > b")]
    routes += [way("one > c", "approve"), way("two > c", "approve"), way("b > c")]
    assert await _cut(document(*nodes, agent("c", userPrompt="c"), routes=routes))


async def test_the_order_of_the_deferred_is_kept() -> None:
    names = ("x", "y", "z")
    nodes = [agent(f"{name}{at}", userPrompt=f"{name}{at}") for name in names for at in (1, 2)]
    routes = [way("start > ok"), way("ok > d", "approve")]
    routes += [way(f"start > {name}1") for name in names] + [way(f"{name}1 > {name}2") for name in names]
    source = document(start(), approval("ok"), agent("d", userPrompt="d"), *nodes, routes=routes)
    whole = Run(source)
    await whole.begin()
    paused_at = len(whole.log.texts)
    await whole.answer("ok")
    for kept in range(paused_at + 1, len(whole.log.texts)):
        again = Run(source)
        again.log = MemoryRunLog(whole.log.texts[:kept])
        await again.resume()
        assert again.ran == whole.ran
