"""Random workflow documents: no order and no kill makes the engine differ from the document (hypothesis).

Covers: pipeline/workflows/exploring/orders.py, pipeline/workflows/compiling.py,
pipeline/graph/execution/held_back.py.
"""

from __future__ import annotations

import json
import random
import zlib
from collections import Counter
from collections.abc import AsyncGenerator
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipeline.domain.chat import ToolCall
from pipeline.llm.client import LlmFinished, LlmItem, LlmRequest, ToolAsked
from pipeline.workflows.exploring.explorer import explore
from pipeline.workflows.reading import checked, read_workflow
from pipeline.workflows.run_record import WorkflowRun
from tests.pipeline.workflows.documents import Echo, Run
from tests.pipeline.workflows.test_broken_documents import PLANTS
from tests.properties.workflow_documents import Plain, flowing_document
from tests.support.graph_log import MemoryRunLog


def _examples(calm: int) -> settings:
    """So many examples; those of the profile where it asks for a long search."""
    most = settings.default.max_examples if settings.default else calm
    return settings(max_examples=most if most > 100 else calm)


_SEEDS = st.integers(0, 10**9)
_MOST_ANSWERS = 10
_MOST_CUTS = 20


class Delegating(Echo):
    """A model that calls the first sub-agent that it has, once, and then repeats its last message."""

    async def stream(self, request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
        """See `LlmClient.stream`."""
        if request.tools and request.messages[-1].role != "tool":
            self.asked.append(request.messages[-1].content)
            arguments = json.dumps({"message": "yes"})
            yield ToolAsked(call=ToolCall(id="c1", name=request.tools[0].name, arguments=arguments))
            yield LlmFinished(finish_reason="tool_calls")
            return
        async for item in super().stream(request):
            yield item


@given(_SEEDS)
@_examples(15)
def test_no_order_and_no_kill_makes_the_engine_differ_from_the_document(seed: int) -> None:
    explored = explore(read_workflow(flowing_document(random.Random(seed), 6)), bound=40)
    found = explored.counterexample
    assert found is None or found.what.startswith("this path never ends"), found


@given(_SEEDS)
@_examples(12)
def test_the_orders_that_are_left_out_change_nothing(seed: int) -> None:
    workflow = read_workflow(flowing_document(random.Random(seed), 5))
    some, every = explore(workflow, bound=80), explore(workflow, bound=400, every_order=True)
    assume(not some.bounded and not every.bounded)
    assert (some.counterexample is None) == (every.counterexample is None)


def _asked(run: Run) -> int:
    """Calls of the model."""
    return len(run.llm.asked) if isinstance(run.llm, Echo) else len(run.llm.requests)


async def _to_the_end(run: Run, record: WorkflowRun, seed: int) -> WorkflowRun:
    """Answer the oldest approval again and again, by the seed: the same for the same branch and visit."""
    for _ in range(_MOST_ANSWERS):
        if record.status != "paused":
            break
        gate = run.outcome.gates[0]
        rejects = zlib.crc32(f"{seed} {gate.id.partition(':')[2]}".encode()) % 3 == 0
        record = await run.answer(gate.node, "reject" if rejects else "approve")
    return record


def _facts(run: Run, record: WorkflowRun) -> tuple[Any, ...]:
    """What does not depend on the order in which parallel branches end."""
    said = Counter((entry.node, entry.content) for entry in record.logs if entry.type == "llm_response")
    return record.status, Counter(run.ran), Counter(run.said.split("\n\n")), said


def _finished_calls(log: MemoryRunLog) -> int:
    """Answers of the model that are on record."""
    return sum(
        record is not None and record["do"] == "step" and record["node"] == "agent" for record in log.records
    )


@given(_SEEDS, _SEEDS)
@_examples(10)
async def test_a_run_that_is_killed_after_any_record_and_resumed_is_the_uninterrupted_run(
    seed: int, answers: int
) -> None:
    source = flowing_document(random.Random(seed), 5)
    whole = Run(source, llm=Delegating({}))
    expected = await _to_the_end(whole, await whole.begin(), answers)
    assume(expected.status == "completed")
    alone = not any(route.get("sourceHandle") == "subagent" for route in source["connections"])
    ends = range(1, len(whole.log.texts))
    for kept in ends[:: 1 + len(ends) // _MOST_CUTS]:
        again = Run(source, llm=Delegating({}))
        again.log = MemoryRunLog(whole.log.texts[:kept])
        on_record = _finished_calls(again.log)
        record = await _to_the_end(again, await again.resume(), answers)
        assert _facts(again, record) == _facts(whole, expected), kept
        if alone:
            assert _asked(again) == _asked(whole) - on_record, kept


@given(_SEEDS)
@_examples(25)
async def test_a_document_that_passes_the_check_is_refused_by_no_run(seed: int) -> None:
    dice = random.Random(seed)
    source = flowing_document(dice, 6)
    _damage(source, dice)
    workflow, _ = checked(source)
    assume(workflow is not None)
    run = Run(source, llm=Delegating({}))
    record = await _to_the_end(run, await run.begin(), seed)
    assert record.status in ("completed", "paused") or run.outcome.stop_reason == "max_steps"


def _damage(source: Plain, dice: random.Random) -> None:
    """Change a part so that the document may still be valid, or plant a mistake."""
    match dice.randrange(5):
        case 0:
            dice.choice(dice.choice(PLANTS))(source, dice)
        case 1:
            del source["connections"][dice.randrange(len(source["connections"]))]
        case 2:
            route, node = dice.choice(source["connections"]), dice.choice(source["nodes"])
            route["target"] = node["id"]
        case 3:
            dice.choice(source["nodes"])["id"] = dice.choice(("end", "result", "a b", "intake", "x/y"))
        case _:
            dice.choice(source["nodes"])["data"] = {}
