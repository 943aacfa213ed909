"""The companion alone: its graph beside LangGraph, the crisis gate, the write policy, and recall by size."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from bench import graph
from bench.graph_measure import Measured, compare, worker
from bench.report import BenchUnavailable, Report, median, percentile, scratch_folder
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.clock import SystemClock
from pipeline.memory.candidates import FactCandidate, Judged
from pipeline.memory.loading import load_memory
from pipeline.memory.policy.decisions import decide_fact
from pipeline.memory.ports import MemoryWrites
from pipeline.memory.values import EntityRef, Fact
from pipeline.safety.ladder import EarlierEntry, assess

_SIZES = (100, 10_000)
_CALLS = 200
_WRITES = 60
_BATCH = 500
_PERSON = EntityRef("User", "user")
_TOPICS = (
    "hiking in the mountains",
    "a sister called Anna",
    "pasta with garlic",
    "the night shift",
    "old jazz records",
    "a flat in Lisbon",
    "learning the cello",
    "a dog called Bruno",
    "swimming before work",
    "tea without sugar",
)
_MESSAGES = (
    "I had a long day and my sister did not call, so I went out and thought about the summer.",
    "thanks, that helps",
    "Why do I always freeze when somebody raises their voice at me, even if it is not about me?",
    "Ich konnte wieder nicht schlafen und habe die ganze Nacht an die Arbeit gedacht.",
)
_BEFORE = (
    EarlierEntry("person", _MESSAGES[0]),
    EarlierEntry("bot", "That sounds like a lot. How was it outside?"),
) * 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    """Of an owner with so many facts."""

    recall_ms: Sequence[float]
    write_ms: Sequence[float]


async def run(*, peer: Path = graph.PEER, rounds: int = 9) -> Report:
    """Measure everything. Raises BenchUnavailable where LangGraph is not installed."""
    _require(peer)
    with scratch_folder() as folder:
        turn = await _turn(peer, folder, rounds)
        gate = _times_us(lambda number: assess(_MESSAGES[number % len(_MESSAGES)], _BEFORE))
        policy = _times_us(lambda number: decide_fact(_candidate(number)))
        sizes = {size: await _size(folder / f"{size}.sqlite3", size) for size in _SIZES}
    return _report(turn, gate, policy, sizes, rounds)


def _require(peer: Path) -> None:
    if not peer.is_file():
        raise BenchUnavailable(
            f"the companion bench compares with LangGraph, which is not installed at {peer}: "
            "`make bench NAME=companion` makes one (100 MB), or name its Python with --peer"
        )


async def _turn(peer_python: Path, folder: Path, rounds: int) -> Measured:
    """The graph of eight nodes, one of them a subgraph of seven, on SQLite; LangGraph's has the same
    nodes."""
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(
            worker(Path(sys.executable), "bench.graph_ours", folder / "ours")
        )
        peer = await stack.enter_async_context(worker(peer_python, "bench.graph_peer", folder / "peer"))
        return await compare(ours, peer, graph.pairings()["safety8_sqlite"], rounds)


def _times_us(call: Callable[[int], object]) -> list[float]:
    """Microseconds of processor time of each call, after some that warm up."""
    times = []
    for number in range(_CALLS + 20):
        began = time.process_time()
        call(number)
        times.append((time.process_time() - began) * 1e6)
    return times[20:]


async def _size(path: Path, size: int) -> _Size:
    store, clock = SqliteStore(path, synchronous="FULL"), SystemClock()
    await store.open()
    try:
        book = store.memories
        for start in range(0, size, _BATCH):
            facts = tuple(_fact(number) for number in range(start, min(size, start + _BATCH)))
            await book.write("p", MemoryWrites(key=f"seed {start}", session_id="seed", at=1.0, facts=facts))

        async def recall(number: int) -> object:
            question = f"Do you remember what I said about {_TOPICS[number % len(_TOPICS)]}, number {number}?"
            return await load_memory(book, "p", question, first_turn=False, clock=clock, mode="local")

        async def write(number: int) -> object:
            facts = (_fact(size + number),)
            return await book.write(
                "p", MemoryWrites(key=f"m{number}", session_id=f"s{number}", at=2.0, facts=facts)
            )

        return _Size(recall_ms=await _elapsed_ms(recall, _WRITES), write_ms=await _elapsed_ms(write, _WRITES))
    finally:
        await store.close()


async def _elapsed_ms(call: Callable[[int], Awaitable[object]], count: int) -> list[float]:
    """Milliseconds of elapsed time of each call."""
    times = []
    for number in range(count + 5):
        began = time.perf_counter()
        await call(number)
        times.append((time.perf_counter() - began) * 1e3)
    return times[5:]


def _fact(number: int) -> Fact:
    topic = _TOPICS[number % len(_TOPICS)]
    return Fact(
        id=f"f{number}",
        category="preference",
        subject=_PERSON,
        predicate="KNOWS",
        object=EntityRef("Concern", f"{topic} {number}"),
        evidence_quote=f"I spoke about {topic} on day {number}",
        confidence="high",
        source_session_id=f"s{number // 20}",
        source_turn_index=number % 20,
        created_at=float(number),
        last_referenced_at=float(number),
        write_timing="immediate",
        write_reason="bench",
    )


def _candidate(number: int) -> FactCandidate:
    return FactCandidate(
        id=f"c{number}",
        category="preference",
        subject=_PERSON,
        predicate="KNOWS",
        object=EntityRef("Concern", _TOPICS[number % len(_TOPICS)]),
        evidence_quote=_MESSAGES[number % len(_MESSAGES)],
        confidence="high",
        judged=Judged(),
        session_id="s",
        turn_index=number,
    )


def _report(
    turn: Measured, gate: Sequence[float], policy: Sequence[float], sizes: dict[int, _Size], rounds: int
) -> Report:
    small, large = _SIZES
    ratio = median(sizes[large].write_ms) / median(sizes[small].write_ms)
    rows = [
        ("eight-node turn with SQLite", f"{turn.ours_us:.0f} µs", ""),
        ("the same with LangGraph", f"{turn.peer_us:.0f} µs", ""),
        ("LangGraph's time over ours", f"{turn.ratio:.1f}", f"{turn.lowest:.1f} to {turn.highest:.1f}"),
        ("crisis gate, patterns", f"{median(gate):.0f} µs", f"{percentile(gate, 0.99):.0f} µs"),
        ("write policy, one fact", f"{median(policy):.0f} µs", f"{percentile(policy, 0.99):.0f} µs"),
    ]
    for size, found in sizes.items():
        rows += [
            (
                f"recall from {size:,} facts",
                f"{median(found.recall_ms):.2f} ms",
                f"{percentile(found.recall_ms, 0.95):.2f} ms",
            ),
            (
                f"one fact written beside {size:,}",
                f"{median(found.write_ms):.2f} ms",
                f"{percentile(found.write_ms, 0.95):.2f} ms",
            ),
        ]
    return Report(
        bench="companion",
        title="The companion: its graph beside LangGraph, its gate, policy and memory",
        head=("", "median", "99 %; recall and writes 95 %"),
        rows=rows,
        notes=(
            f"Turns: processor time of each process, {rounds} rounds in alternation; both wait for the disk.",
            "Gate and policy: processor time. Recall and writes: elapsed time, with the disk.",
        ),
        figures={
            "turn_ratio": round(turn.ratio, 1),
            "turn_us": round(turn.ours_us),
            "gate_us": round(median(gate), 1),
            "policy_us": round(median(policy), 1),
            **{f"recall_ms_{size}": round(median(found.recall_ms), 3) for size, found in sizes.items()},
            f"write_ratio_{large}_over_{small}": round(ratio, 2),
        },
    )
