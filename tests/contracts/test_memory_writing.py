"""What the extractors and the end of a session write, on every store: once, whole, and nothing lost."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.storage.ports import Store
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.errors import StorageError
from pipeline.memory.extraction.writing import remember_facts, remember_rules, write_with_rules
from pipeline.memory.ports import MemoryBook, MemoryWrites
from pipeline.memory.sessions.ended import EndedSession
from pipeline.memory.sessions.ending import SessionEnd, end_session
from pipeline.memory.values import Profile, Rule, SessionArc
from tests.contracts.memory_values import ANN, BEN, NOW, rule
from tests.pipeline.memory.candidates import (
    CLOCK,
    REDACTOR,
    Answering,
    ended,
    fact,
    held,
    proposed_rule,
    said,
)
from tests.pipeline.memory.candidates import (
    rule as rule_candidate,
)
from tests.pipeline.memory.test_summary import ARC, TALK

ROUNDS, SOAK_ROUNDS = 60, 500


async def _facts(book: MemoryBook, text: str, *, message: str = "m1", owner: str = ANN) -> dict[str, object]:
    turn = said(text, message_id=message)
    return dict(await remember_facts(book, owner, turn, ask=None, clock=CLOCK, redactor=REDACTOR))


async def _rules(
    book: MemoryBook, text: str, *, message: str = "m1", model: Answering | None = None
) -> dict[str, object]:
    turn, ask = said(text, message_id=message), model.ask if model else None
    return dict(await remember_rules(book, ANN, turn, ask=ask, clock=CLOCK, redactor=REDACTOR))


async def _objects(book: MemoryBook, owner: str = ANN) -> list[str]:
    return sorted(one.object.identifier for one in await book.facts(owner))


async def _end(book: MemoryBook, session: EndedSession, *answers: object, key: str = "") -> SessionEnd:
    ask = Answering(*answers).ask if answers else None
    return await end_session(book, ANN, session, ask=ask, clock=CLOCK, redactor=REDACTOR, key=key)


async def test_facts_of_a_message_are_written_once(store: Store) -> None:
    book = store.memories
    first = await _facts(book, "I live in Leeds. My sister Ann died.")
    again = await _facts(book, "I live in Leeds. My sister Ann died.")
    assert await _objects(book) == ["home: Leeds", "sister Ann"]
    assert (first["semantic_writes"], first["semantic_bumps"]) == (2, 0)
    assert (again["semantic_writes"], again["semantic_bumps"]) == (0, 0)
    assert await _objects(book, BEN) == []


async def test_the_same_said_again_renews_and_another_home_replaces(store: Store) -> None:
    book = store.memories
    await _facts(book, "I live in Leeds.")
    again = await _facts(book, "I live in Leeds!", message="m2")
    assert (again["semantic_writes"], again["semantic_bumps"]) == (0, 1)
    moved = await _facts(book, "I moved to Porto.", message="m3")
    assert moved["semantic_writes"] == 1
    assert await _objects(book) == ["home: Porto"]


async def test_held_candidates_wait_for_the_end_of_the_session(store: Store) -> None:
    book = store.memories
    found = await _facts(book, "My grandmother passed away.")
    assert (found["semantic_writes"], found["semantic_session_end_holds"]) == (0, 1)
    assert await _objects(book) == []
    assert len(await book.held(ANN, "s1")) == 1


async def test_a_person_who_lets_nothing_be_remembered_is_not_searched(store: Store) -> None:
    book = store.memories
    await book.write_profile(ANN, Profile(enabled=False))
    found = await _facts(book, "I live in Leeds.")
    assert found["extract_facts_reason"] == "skipped: the person lets nothing be remembered"
    model = Answering({"rules": [], "reason": "none"})
    await _rules(book, "please always answer in German", model=model)
    assert model.asked == []
    assert (await book.profile(ANN)).rules == ()
    end = await _end(book, ended(*TALK), ARC)
    assert (end.arc, await book.arcs(ANN)) == (False, ())


async def test_rules_are_added_once_and_replace_the_contrary(store: Store) -> None:
    book = store.memories
    for _ in range(2):
        await _rules(book, "Please always answer in German. Please stop using emojis.")
    await _rules(book, "Please always answer in French.", message="m2")
    profile = await book.profile(ANN)
    assert [one.text for one in profile.rules] == ["Stop using emojis.", "Always answer in French."]
    assert [one.text for one in profile.archived_rules] == ["Always answer in German."]
    assert profile.revision == 2


async def test_both_extractors_of_a_message_write(store: Store) -> None:
    book, text = store.memories, "I live in Leeds. Please always answer in German."
    await asyncio.gather(_facts(book, text), _rules(book, text))
    assert await _objects(book) == ["home: Leeds"]
    assert len((await book.profile(ANN)).rules) == 1


@pytest.mark.soak
async def test_two_writers_lose_no_rule(tmp_path: Path, *, soak: bool) -> None:
    # No wait for the disk: this is about two writers, and a power cut is tested elsewhere.
    opened = SqliteStore(tmp_path / "store.db", synchronous="NORMAL")
    await opened.open()
    book = opened.memories

    def added(name: str, number: int) -> tuple[MemoryWrites, Rule]:
        made = replace(rule(name, f"Mention {name} in winter."), created_at=NOW + number)
        return MemoryWrites(key=name, session_id="s1", at=NOW), made

    rounds = SOAK_ROUNDS if soak else ROUNDS
    for number in range(rounds):
        both = added(f"a{number}", number), added(f"b{number}", number)
        await asyncio.gather(*(write_with_rules(book, ANN, writes, [made]) for writes, made in both))
        kept = [known.id for known in (await book.profile(ANN)).rules[-2:]]
        assert sorted(kept) == [f"a{number}", f"b{number}"]
    assert (await book.profile(ANN)).revision == 2 * rounds
    await opened.close()


async def test_the_end_of_a_session_writes_what_is_supported_and_drops_the_rest(store: Store) -> None:
    book = store.memories
    await _facts(book, "My grandmother passed away.")
    implied = [
        rule_candidate("long texts tire me", turn=0),
        rule_candidate("long texts tire my eyes", turn=1),
    ]
    waiting = (held(fact("we lost the shop", about="shop")), *(held(one) for one in implied))
    await book.write(ANN, MemoryWrites(key="more", session_id="s1", at=NOW, held=waiting))
    session = ended("My grandmother passed away.", "I miss my grandmother, long texts tire my eyes")
    end = await _end(book, session)
    assert await _objects(book) == ["death of grandmother"]
    assert (end.semantic_writes, end.semantic_skips, end.procedural_writes, end.arc) == (1, 1, 1, False)
    kept = (await book.facts(ANN))[0]
    assert (kept.write_timing, kept.write_reason) == ("session_end", "support 2, arc 0, earlier sessions 0")
    profile = await book.profile(ANN)
    assert [one.source for one in profile.rules] == ["consolidation"]
    assert profile.last_consolidated_at == CLOCK.now()
    assert await book.held(ANN, "s1") == ()


async def test_a_summary_supports_a_candidate_and_is_stored(store: Store) -> None:
    book = store.memories
    await book.write(
        ANN, MemoryWrites(key="k", session_id="s1", at=NOW, held=(held(fact("the exam", about="exam")),))
    )
    end = await _end(book, ended(*TALK), ARC)
    assert (end.semantic_writes, end.arc, end.reason) == (1, True, "summarised")
    assert [one.summary for one in await book.arcs(ANN)] == [ARC["summary"]]


async def test_an_earlier_session_supports_what_needs_repetition(store: Store) -> None:
    book = store.memories
    arc = SessionArc(
        session_id="s0",
        started_at=NOW,
        ended_at=NOW,
        turn_count=2,
        primary_themes=(),
        summary="They feel like a failure at chess.",
    )
    await book.write(ANN, MemoryWrites(key="a", session_id="s0", at=NOW, arc=arc))
    candidate = fact("I am a failure at chess", about="chess")
    waiting = (held(candidate, "require_repetition"),)
    await book.write(ANN, MemoryWrites(key="k", session_id="s1", at=NOW, held=waiting))
    await _end(book, ended("I am a failure at chess"))
    assert [one.write_timing for one in await book.facts(ANN)] == ["promotion"]


async def test_the_end_of_a_session_is_written_once(store: Store) -> None:
    book = store.memories
    await _facts(book, "My grandmother passed away.")
    session = ended("My grandmother passed away.", "I miss my grandmother")
    assert not (await _end(book, session, ARC)).repeated
    before = await book.everything(ANN)
    assert (await _end(book, session, ARC)).repeated
    assert await book.everything(ANN) == before
    assert not (await _end(book, session, ARC, key="s1:2")).repeated
    assert len(await book.arcs(ANN)) == 1


async def test_an_interrupted_end_is_repeated_as_a_whole(store: Store) -> None:
    book = _Failing(store.memories)
    await _facts(store.memories, "My grandmother passed away.")
    session = ended("My grandmother passed away.", "I miss my grandmother")
    with pytest.raises(StorageError):
        await _end(book, session, ARC)  # type: ignore[arg-type]  # a book whose writes fail
    assert (await _objects(store.memories), await store.memories.arcs(ANN)) == ([], ())
    await _end(store.memories, session, ARC)
    assert await _objects(store.memories) == ["death of grandmother"]


async def test_a_step_that_fails_leaves_the_others(store: Store) -> None:
    book = _Blind(store.memories)
    await _facts(store.memories, "My grandmother passed away.")

    async def broken(_messages: object) -> str:
        raise RuntimeError("broken")

    session = ended("My grandmother passed away.", "I miss my grandmother")
    end = await end_session(
        book,  # type: ignore[arg-type]  # a book that cannot read what was before
        ANN,
        session,
        ask=broken,
        clock=CLOCK,
        redactor=REDACTOR,
    )
    assert (end.semantic_writes, end.arc, end.reason) == (1, False, "skipped: the summary failed")


async def test_nothing_off_the_record_is_left_at_the_end(store: Store) -> None:
    book = store.memories
    await book.write(ANN, MemoryWrites(key="k", session_id="s1", at=NOW, held=(held(fact("x y z")),)))
    end = await _end(book, replace(ended("x y z", "x y z"), off_the_record=True), ARC)
    assert (end.semantic_writes, end.arc) == (0, False)
    assert await book.held(ANN, "s1") == ()


async def test_a_rule_of_a_model_that_is_implied_needs_two_turns(store: Store) -> None:
    book = store.memories
    for number, text in enumerate(("long texts tire me", "those long texts tire me so")):
        proposal = proposed_rule(text, "Avoid long texts that tire.")
        turn = replace(said(text, message_id=f"m{number}"), turn_index=number)
        model = Answering({"rules": [proposal], "reason": "one"})
        await remember_rules(book, ANN, turn, ask=model.ask, clock=CLOCK, redactor=REDACTOR)
    end = await _end(book, ended("long texts tire me", "those long texts tire me so"))
    assert end.procedural_writes == 1


class _Failing:
    """A book whose writes fail."""

    def __init__(self, book: MemoryBook) -> None:
        self._book = book

    def __getattr__(self, name: str) -> object:
        return getattr(self._book, name)

    async def write(self, _owner: str, _writes: MemoryWrites) -> None:
        raise StorageError("the disk is full")


class _Blind(_Failing):
    """A book that cannot read facts and arcs."""

    async def write(self, owner: str, writes: MemoryWrites) -> object:  # type: ignore[override]  # it works
        return await self._book.write(owner, writes)

    async def facts(self, _owner: str, **_more: object) -> None:
        raise StorageError("unreadable")

    async def arcs(self, _owner: str, **_more: object) -> None:
        raise StorageError("unreadable")
