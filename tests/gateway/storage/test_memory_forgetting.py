"""What memory forgets is in no byte of the file or its log, while the store continues."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

from gateway.storage.sqlite import SqliteStore
from pipeline.memory.values import Profile
from pipeline.memory.words import WORDS_VERSION
from tests.contracts.memory_values import ANN, BEN, NOW, arc, fact, found, held, kept, rule, write

WORD = "zebrafish"


def _left(folder: Path) -> bool:
    return any(WORD.encode() in path.read_bytes() for path in folder.iterdir())


def _quote(number: int) -> str:
    return (f"{WORD} number {number} " * (1 + number % 9))[:280]


async def _opened(folder: Path) -> SqliteStore:
    store = SqliteStore(folder / "store.db", synchronous="NORMAL")
    await store.open()
    return store


async def test_forgotten_facts_between_others_are_written_over(tmp_path: Path) -> None:
    store = await _opened(tmp_path)
    for number in range(60):
        quote = _quote(number) if number % 3 else f"ordinary {number}"
        one = fact(f"f{number}", quote, about=f"{quote[:90]} x", turn=number)
        await write(store, ANN, one)
        if number % 5 == 0 and number:
            await write(store, ANN, key=f"k{number}", supersedes=((f"f{number - 1}", f"f{number}"),))
    assert len(await found(store, ANN, WORD, limit=99)) > 20
    words = [f"f{number}" for number in range(60) if number % 3]
    assert await store.memories.forget(ANN, words) == 40
    assert not _left(tmp_path)
    await store.close()
    assert not _left(tmp_path)
    store = await _opened(tmp_path)
    assert await found(store, ANN, WORD, limit=99) == []
    assert len(await found(store, ANN, "ordinary", limit=99)) == len(await kept(store, ANN)) > 10
    await store.close()


async def test_an_erased_owner_leaves_no_word(tmp_path: Path) -> None:
    store = await _opened(tmp_path)
    profile = Profile()
    for number in range(30):
        for owner in (ANN, BEN):
            own = owner == ANN
            text = _quote(number) if own else "ordinary"
            waiting = held(f"h{number}")
            waiting = replace(waiting, candidate=replace(waiting.candidate, evidence_quote=text))
            session = f"s{number}"
            await write(
                store,
                owner,
                fact(f"f{number}", text, session=session, turn=number),
                held=(waiting,),
                session_id=session,
                arc=arc(session, text * 2, ended_at=NOW + number),
            )
        rules = tuple(rule(f"r{n}", f"Mention {WORD} {n}. " * (1 + n % 3)) for n in range(number % 20))
        profile = await store.memories.write_profile(ANN, replace(profile, rules=rules))
    assert _left(tmp_path)
    assert await store.memories.erase(ANN) > 90
    assert not _left(tmp_path)
    assert len(await kept(store, BEN)) == 30
    await store.close()
    assert not _left(tmp_path)


async def test_pruned_and_session_facts_are_written_over_too(tmp_path: Path) -> None:
    store = await _opened(tmp_path)
    for number in range(20):
        at = NOW - number * 10
        one = fact(f"f{number}", _quote(number), session=f"s{number}", last_referenced_at=at)
        await write(store, ANN, one, arc=arc(f"s{number}", _quote(number), ended_at=at))
    assert await store.memories.prune(before=NOW - 95) == 20
    for number in range(10):
        assert await store.memories.forget_session(ANN, f"s{number}") == 2
    assert not _left(tmp_path)
    await store.close()


async def test_the_index_holds_no_word_and_differs_between_owners(tmp_path: Path) -> None:
    store = await _opened(tmp_path)
    for owner in (ANN, BEN):
        await write(store, owner, fact("f1", f"my {WORD}"))
    await store.close()
    db = sqlite3.connect(tmp_path / "store.db")
    terms = [row[0] for row in db.execute("SELECT terms FROM memory_facts")]
    assert not set(terms[0].split()) & set(terms[1].split())
    assert all(len(term) == 16 for term in terms[0].split())
    db.close()


async def test_terms_of_an_earlier_release_are_made_again_at_the_next_search(tmp_path: Path) -> None:
    store = await _opened(tmp_path)
    await write(store, ANN, fact("f1", f"my {WORD}"), fact("f2", "tea", turn=9))
    await store.close()
    db = sqlite3.connect(tmp_path / "store.db")
    rows = db.execute("SELECT n, terms FROM memory_facts").fetchall()
    for number, terms in rows:
        db.execute(
            "INSERT INTO memory_index (memory_index, rowid, terms) VALUES ('delete', ?, ?)", (number, terms)
        )
        db.execute("INSERT INTO memory_index (rowid, terms) VALUES (?, 'old')", (number,))
    db.execute("UPDATE memory_facts SET terms = 'old'")
    db.execute("UPDATE memory_owners SET words = ?", (WORDS_VERSION - 1,))
    db.commit()
    db.close()
    store = await _opened(tmp_path)
    assert await found(store, ANN, WORD) == ["f1"]
    assert await found(store, BEN, WORD) == []
    assert await found(store, ANN, "tea") == ["f2"]
    await store.memories.forget(ANN, ["f1"])
    assert await found(store, ANN, WORD) == []
    await store.close()
