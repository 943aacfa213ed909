"""Measure the memory by size: the processor time of adding a fact, and of a recall, for one owner."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from gateway.storage.sqlite import SqliteStore
from pipeline.memory.ports import MemoryWrites, Question
from pipeline.memory.values import EntityRef, Fact

_SIZES = (100, 10_000)
_REPEATS = 40
_OWNER, _NOW = "bench:main:user:owner", 1_796_000_000.0
_SYLLABLES = ("ba", "lo", "mi", "ter", "kan", "su", "rel", "pon", "vi", "dra", "go", "fen")
_COMMON = ("sister", "work", "sleep", "exam", "river", "doctor", "mother", "train", "garden", "evening")


class MemoryCosts(NamedTuple):
    """Processor time in milliseconds, by size of the owner's memory."""

    recall_ms_100: float
    recall_ms_10000: float
    write_ms_100: float
    write_ms_10000: float

    @property
    def write_ratio(self) -> float:
        """The 10,000th fact compared with the 100th."""
        return self.write_ms_10000 / self.write_ms_100


async def memory_costs(*, sizes: tuple[int, int] = _SIZES, repeats: int = _REPEATS) -> MemoryCosts:
    """Medians over `repeats` recalls and writes, each counted over all threads of this process."""
    chance = random.Random(5)
    words = ["".join(chance.choices(_SYLLABLES, k=3)) for _ in range(3_000)]
    recalls, writes = [], []
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "store.db", synchronous="NORMAL")
        await store.open()
        try:
            number = 0
            for size in sizes:
                number = await _fill(store, chance, words, number, size - repeats)
                writes.append(await _writes(store, chance, words, number, repeats))
                number += repeats
                recalls.append(await _recalls(store, chance, words, repeats))
        finally:
            await store.close()
    return MemoryCosts(recalls[0], recalls[1], writes[0], writes[1])


async def _fill(store: SqliteStore, chance: random.Random, words: list[str], begin: int, end: int) -> int:
    for first in range(begin, end, 200):
        facts = tuple(_fact(chance, words, number) for number in range(first, min(first + 200, end)))
        await store.memories.write(_OWNER, _work(f"fill-{first}", facts))
    return max(begin, end)


async def _writes(
    store: SqliteStore, chance: random.Random, words: list[str], begin: int, repeats: int
) -> float:
    took = []
    for number in range(begin, begin + repeats):
        work = _work(f"one-{number}", (_fact(chance, words, number),))
        started = time.process_time()
        await store.memories.write(_OWNER, work)
        took.append(time.process_time() - started)
    return statistics.median(took) * 1_000


async def _recalls(store: SqliteStore, chance: random.Random, words: list[str], repeats: int) -> float:
    took = []
    for _ in range(repeats):
        asked = " ".join((*chance.choices(_COMMON, k=3), *chance.choices(words, k=3)))
        question = Question(text=f"What did I say about my {asked}?")
        started = time.process_time()
        await store.memories.find_facts(_OWNER, question, limit=20)
        took.append(time.process_time() - started)
    return statistics.median(took) * 1_000


def _work(key: str, facts: tuple[Fact, ...]) -> MemoryWrites:
    return MemoryWrites(key=key, session_id="bench", at=_NOW, facts=facts)


def _fact(chance: random.Random, words: list[str], number: int) -> Fact:
    said = [*chance.choices(words, k=8), *chance.choices(_COMMON, k=3)]
    return Fact(
        id=f"fact-{number}",
        category=chance.choice(("context", "relationship", "goal", "trigger")),
        subject=EntityRef("User", "user"),
        predicate="EXPERIENCED",
        object=EntityRef("Concern", f"{said[0]} {number}"),
        evidence_quote=" ".join(said),
        confidence="high",
        source_session_id=f"session-{number // 12}",
        source_turn_index=number % 12,
        created_at=_NOW,
        last_referenced_at=_NOW,
        write_timing="immediate",
        write_reason="bench",
    )
