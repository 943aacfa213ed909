"""A playbook that is cut off after any record and resumed ends as the uninterrupted one (hypothesis)."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.domain.errors import ModelUnavailable
from pipeline.playbooks.run_record import PlaybookRun
from tests.pipeline.playbooks.documents import Plain, PlaybookTest, agent, node, playbook, trigger, way
from tests.support.graph_log import MemoryRunLog

_ONBOARDING = json.loads(Path("examples/workflows/onboarding.playbook.json").read_text("utf-8"))
_RECORDED = (Path(__file__).parent / "recorded_wait.jsonl").read_text("utf-8").splitlines()
_MOST_CUTS = 20
_MOST_PAUSES = 40
_AT = re.compile(r'"at": ?([0-9.]+)')


def random_playbook(chance: random.Random, size: int) -> Plain:
    """A document without mistakes: layers of nodes, each with edges to later ones, and perhaps a loop."""
    nodes: list[Plain] = [trigger()]
    edges: list[Plain] = []
    for at in range(size):
        name = f"n{at}"
        nodes.append(_random_node(chance, name))
        for source in chance.sample(nodes[:-1], k=min(len(nodes) - 1, chance.choice((1, 1, 2)))):
            handle = _random_handle(chance, source)
            edges.append(way(f"{source['id']} > {name}", handle))
    for one in nodes:
        if one["subtype"] == "loop":
            body = f"{one['id']}_body"
            nodes = [*nodes, agent(body)]
            edges += [
                way(f"{one['id']} > {body}", "loop-start"),
                way(f"{body} > {one['id']}", into="loop-back"),
            ]
    return playbook(*nodes, edges=edges)


def _random_node(chance: random.Random, name: str) -> Plain:
    kind = chance.choice(
        (
            "agent",
            "agent",
            "bad",
            "condition",
            "wait",
            "user-input",
            "options",
            "merge",
            "first",
            "loop",
            "response",
        )
    )
    match kind:
        case "agent":
            return agent(name)
        case "bad":
            return agent(name, "bad")
        case "condition":
            return node("condition", name, expression=chance.choice(("trigger == 'hello'", "trigger == 'x'")))
        case "wait":
            return node("wait", name, amount=chance.randint(1, 9), unit="h")
        case "user-input":
            return node("user-input", name, prompt=f"{name}?")
        case "options":
            return node("user-input", name, prompt=f"{name}?", options=["a", "b"])
        case "first":
            return node("merge", name, strategy="first")
        case "loop":
            return node("loop", name, maxIterations=2)
        case "response":
            return node("response", name, text=f"{name} says")
        case _:
            return node("merge", name)


def _random_handle(chance: random.Random, source: Plain) -> str:
    if source["subtype"] == "condition":
        return chance.choice(("condition-true", "condition-false"))
    return "loop-exit" if source["subtype"] == "loop" else ""


async def _to_the_end(run: PlaybookTest, record: PlaybookRun) -> PlaybookRun:
    """Answer every question, and let the time of every wait come."""
    for _ in range(_MOST_PAUSES):
        if record.status != "waiting":
            break
        (gate,) = run.outcome.gates
        if gate.expires_at is not None and (gate.asks == "nothing" or int(gate.expires_at) % 2):
            record = await run.pass_time(max(0.0, gate.expires_at - run.clock.now()))
        else:
            record = await run.answer(gate.options[0] if gate.options else f"{gate.node} it is")
    return record


def _run(source: Plain) -> PlaybookTest:
    return PlaybookTest(source, says={"bad": ModelUnavailable("The model is down.")})


def _facts(run: PlaybookTest, record: PlaybookRun) -> tuple[Any, ...]:
    results = {name: found["result"] for name, found in record.outputs.items()}
    return record.status, record.failure, sorted(record.completed), results, run.said


async def _cut(source: Plain) -> str:
    """Cut a run off at many of its records; the status of the uninterrupted one."""
    whole = _run(source)
    expected = await _to_the_end(whole, await whole.begin())
    assert expected.status in ("completed", "failed")
    ends = range(1, len(whole.log.texts))
    for kept in ends[:: 1 + len(ends) // _MOST_CUTS]:
        again, texts = _run(source), whole.log.texts[:kept]
        times = [float(found) for text in texts for found in _AT.findall(text)]
        await again.clock.advance(max([0.0, *(at - again.clock.now() for at in times)]))
        again.log = MemoryRunLog(texts)
        again.turns += sum('"do": "answer"' in text for text in texts)
        record = await _to_the_end(again, await again.resume())
        assert _facts(again, record) == _facts(whole, expected), kept
    return expected.status


@given(st.integers(0, 10**9))
@settings(max_examples=6, deadline=None)
async def test_a_random_playbook_with_random_answers(seed: int) -> None:
    await _cut(random_playbook(random.Random(seed), 6))


async def test_branches_with_waits_questions_and_a_loop() -> None:
    nodes = [trigger(), agent("a"), agent("b"), node("wait", "w", amount=1, unit="h")]
    nodes += [
        node("user-input", "ask", prompt="Well?"),
        node("merge", "m"),
        node("loop", "l", maxIterations=2),
    ]
    edges = [way("start > a"), way("start > w"), way("a > ask"), way("ask > m"), way("w > b"), way("b > m")]
    edges += [way("m > l"), way("l > body", "loop-start"), way("body > l", into="loop-back")]
    source = playbook(*nodes, agent("body"), agent("end"), edges=[*edges, way("l > end", "loop-exit")])
    assert await _cut(source) == "completed"


async def test_a_wait_that_an_earlier_version_recorded_comes_to_its_end() -> None:
    """Change a playbook's graph only so that this run still continues: otherwise an update loses waits."""
    run = PlaybookTest(_ONBOARDING)
    run.log = MemoryRunLog(_RECORDED)
    run.turns = 3
    await run.clock.advance(86_400)
    record = await run.resume()
    assert (record.status, record.current) == ("waiting", ("going",))
    assert run.prompt == "Ada, did you find everything?"
