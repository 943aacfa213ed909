"""Recall of facts about invented people: is the fact that a question asks for among the five that are shown?

`tuning` was written before the rules and the lexicon of `pipeline/memory`, and they were written with it;
`tuning_after` when the first lexicon was done, which was then widened with it. `held_out` and `held_out_after` were
written when everything was final, and nothing was changed by them: the first as people ask who mostly repeat a word,
the second on purpose without a word of the fact. All are by the author of the rules. People know a dozen facts or
fewer, so the best five by chance are shown for four questions of ten and more; `crowded` asks the same questions, with
vectors, of an owner who has the facts of everybody of the language.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.report import table
from gateway.storage.memory.memory_index import DictionaryIndex
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.clock import SystemClock
from pipeline.memory.embedding import Embedder
from pipeline.memory.loading import FETCHED
from pipeline.memory.local_embedder import LocalEmbedder, is_installed
from pipeline.memory.ports import FactVector, MemoryWrites, Question
from pipeline.memory.recall import SHOWN, fact_text, find_by_words
from pipeline.memory.values import EntityRef, Fact

HERE = Path(__file__).with_name("recall_people")
HALVES = ("tuning", "tuning_after", "held_out", "held_out_after")
_USER = EntityRef("User", "user")
_NOW = 1_796_000_000.0
_CROWD = "everybody"


class Asked(NamedTuple):
    """A question and the fact that answers it."""

    half: str
    person: str
    language: str
    foreign: bool
    """Whether it is in another language than the fact."""
    text: str
    fact_id: str


class Answered(NamedTuple):
    """What was shown for a question, by words alone and with vectors."""

    asked: Asked
    found: tuple[str, ...]
    """By words, without the newest facts in the places that are left."""
    words: tuple[str, ...]
    vectors: tuple[str, ...]
    crowded: tuple[str, ...]

    def has(self, by: str) -> bool:
        """Whether the wanted fact is among the shown ones."""
        shown: Sequence[str] = getattr(self, by)
        return self.asked.fact_id in shown


async def run(chosen: str = "all") -> str:
    """The table, each miss, and the figures as one line of JSON. `chosen`: tuning, held_out or all. Without the extra
    parlour[memory] there are no figures for vectors."""
    halves = tuple(
        half for half in HALVES if (chosen == "all" or half.startswith(chosen)) and _file(half).exists()
    )
    embedder = LocalEmbedder(SystemClock(), timeout_s=120.0) if is_installed() else None
    try:
        answered = [one for half in halves for one in await _answers(half, embedder)]
    finally:
        if embedder is not None:
            await embedder.close()
    parts = [_table(answered, halves)]
    parts += [
        _misses([one for one in answered if one.asked.half == half], half, embedder is not None)
        for half in halves
    ]
    by_half = {half: figures([one for one in answered if one.asked.half == half]) for half in halves}
    parts.append(json.dumps({"eval": "recall", **figures(answered), **by_half}))
    return "\n\n".join(parts)


def read_half(half: str) -> tuple[Mapping[str, tuple[str, list[Fact]]], list[Asked]]:
    """The facts of each person, with the language, and the questions."""
    people: dict[str, tuple[str, list[Fact]]] = {}
    questions: list[Asked] = []
    person = language = ""
    for line in _file(half).read_text(encoding="utf-8").splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "#":
            person, language = rest.split()
            people[person] = (language, [])
        elif mark in ("?", "!"):
            fact = people[person][1][-1]
            questions.append(Asked(half, person, language, mark == "!", rest, fact.id))
        elif line.strip():
            people[person][1].append(_fact(person, len(people[person][1]), line))
    return people, questions


def _fact(person: str, number: int, line: str) -> Fact:
    head, _, quote = line.partition(" | ")
    place, category, predicate, thing = head.split()
    session, _, turn = place.partition(".")
    kind, _, identifier = thing.partition(":")
    return Fact(
        id=f"{person}-{number}",
        category=category,  # type: ignore[arg-type]  # the file's words are those of the values
        subject=_USER,
        predicate=predicate,  # type: ignore[arg-type]  # as above
        object=EntityRef(kind, identifier.replace("_", " ")),  # type: ignore[arg-type]  # as above
        evidence_quote=quote,
        confidence="high",
        source_session_id=f"{person}-{session}",
        source_turn_index=int(turn),
        created_at=_NOW,
        last_referenced_at=_NOW,
        write_timing="session_end",
        write_reason="eval",
    )


async def _answers(half: str, embedder: Embedder | None) -> list[Answered]:
    people, questions = read_half(half)
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "store.db", synchronous="NORMAL")
        await store.open()
        try:
            for person, (language, facts) in people.items():
                for owner in (person, f"{_CROWD} {language}"):
                    writes = MemoryWrites(key=person, session_id=person, at=_NOW, facts=tuple(facts))
                    await store.memories.write(owner, writes)
            if embedder is not None:
                await _embed(store, embedder)
            indexes = {
                person: DictionaryIndex(dict(enumerate(facts))) for person, (_, facts) in people.items()
            }
            return [await _answer(store, one, indexes[one.person], embedder) for one in questions]
        finally:
            await store.close()


async def _embed(store: SqliteStore, embedder: Embedder) -> None:
    while waiting := await store.memories.without_vector(embedder.model, limit=64):
        vectors = await embedder.passages([fact_text(fact) for _, fact in waiting])
        rows = [
            FactVector(owner=owner, fact_id=fact.id, vector=vector)
            for (owner, fact), vector in zip(waiting, vectors, strict=True)
        ]
        await store.memories.write_vectors(embedder.model, rows)


async def _answer(
    store: SqliteStore, asked: Asked, index: DictionaryIndex, embedder: Embedder | None
) -> Answered:
    plain = Question(text=asked.text)
    with_vector = plain
    if embedder is not None:
        vector = await embedder.question(asked.text)
        with_vector = Question(text=asked.text, vector=vector, vector_model=embedder.model)
    return Answered(
        asked,
        found=tuple(f"{asked.person}-{hit.number}" for hit in find_by_words(index, asked.text, limit=SHOWN)),
        words=await _shown(store, asked.person, plain),
        vectors=await _shown(store, asked.person, with_vector),
        crowded=await _shown(store, f"{_CROWD} {asked.language}", with_vector),
    )


async def _shown(store: SqliteStore, owner: str, question: Question) -> tuple[str, ...]:
    facts = await store.memories.find_facts(owner, question, limit=FETCHED)
    return tuple(fact.id for fact in facts[:SHOWN])


def figures(answered: Sequence[Answered]) -> dict[str, float | int]:
    """The share of questions whose fact is shown, for both kinds of questions, and how many vectors lose."""
    own = [one for one in answered if not one.asked.foreign]
    foreign = [one for one in answered if one.asked.foreign]
    lost = [one for one in answered if one.has("found") and not one.has("vectors")]
    return {
        "words": _share(own, "words"),
        "words_without_newest": _share(own, "found"),
        "vectors": _share(own, "vectors"),
        "crowded": _share(own, "crowded"),
        "other_language_words": _share(foreign, "words"),
        "other_language_vectors": _share(foreign, "vectors"),
        "lost_by_vectors": len(lost),
        "questions": len(own),
        "other_language_questions": len(foreign),
        "people": len({(one.asked.half, one.asked.person) for one in answered}),
    }


def _share(answered: Sequence[Answered], by: str) -> float:
    return round(sum(one.has(by) for one in answered) / len(answered), 3) if answered else 0.0


def _table(answered: Sequence[Answered], halves: Sequence[str]) -> str:
    rows = []
    for half in (*halves, "all"):
        for label, foreign in (("same language", False), ("another language", True)):
            these = [
                one for one in answered if half in ("all", one.asked.half) and one.asked.foreign == foreign
            ]
            if not these:
                continue
            first = round(sum(one.words[:1] == (one.asked.fact_id,) for one in these) / max(1, len(these)), 3)
            shares = [f"{_share(these, by):.1%}" for by in ("found", "words", "vectors", "crowded")]
            rows.append([half, label, str(len(these)), f"{first:.1%}", *shares])
    heads = ("half", "questions", "n", "first", "by words", "with newest", "with vectors", "crowded")
    return "\n".join(table(heads, rows))


def _misses(answered: Sequence[Answered], half: str, vectors: bool) -> str:  # noqa: FBT001 - of this module
    lines = list(_wrong(answered, vectors))
    return "\n".join((f"Not among the five in {half}: {len(lines)}", *lines))


def _wrong(answered: Sequence[Answered], vectors: bool) -> Iterator[str]:  # noqa: FBT001 - of this module
    for one in answered:
        by = [name for name in ("words", "vectors") if not one.has(name)]
        if by and (vectors or not one.asked.foreign):
            lost = "LOST " if one.has("found") and "vectors" in by else ""
            yield f"  {lost}{'+'.join(by):<14} {one.asked.person}: {one.asked.text}"


def _file(half: str) -> Path:
    return HERE / f"{half}.txt"
