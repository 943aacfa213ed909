"""The workflows that the page's editor saves, and their runs, on every store."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from gateway.storage.ports import Store
from gateway.storage.saved_workflows import SavedRun, SavedSummary
from gateway.storage.sqlite import SqliteStore
from gateway.storage.sqlite.saved_workflows import saved_text
from tests.contracts.conftest import Reopen
from tests.contracts.store_values import NOW

ANNS = "web:local:u_ann."
RUN = SavedRun(thread=f"{ANNS}c_1", message_id="m_1", name="letters", version=2, at=NOW)


async def _saved(store: Store, *texts: str, name: str = "letters") -> None:
    for base, text in enumerate(texts):
        assert await store.page.workflows.save(name, text, base=base, runs="x" not in text, at=NOW + base)


async def test_every_save_is_a_version_and_old_ones_stay(store: Store, reopen: Reopen) -> None:
    await _saved(store, "one", "two x", "three")
    await _saved(store, "A", name="a")
    store = await reopen()
    book = store.page.workflows
    assert [(one.version, one.runs, one.saved_at - NOW) for one in await book.versions("letters")] == [
        (3, True, 2.0),
        (2, False, 1.0),
        (1, True, 0.0),
    ]
    assert [await book.text("letters", version) for version in (0, 1, 2, 3, 4)] == [
        None,
        "one",
        "two x",
        "three",
        None,
    ]
    assert await book.newest() == (
        SavedSummary(name="a", version=1, runs=True, saved_at=NOW),
        SavedSummary(name="letters", version=3, runs=True, saved_at=NOW + 2),
    )
    assert await book.versions("other") == ()


async def test_a_save_over_a_newer_version_changes_nothing(store: Store) -> None:
    book = store.page.workflows
    assert await book.save("letters", "one", base=1, runs=True, at=NOW) is None
    await _saved(store, "one", "two")
    for base in (0, 1, 3):
        assert await book.save("letters", "late", base=base, runs=True, at=NOW) is None
    assert await book.text("letters", 2) == "two"


async def test_of_many_saves_over_one_version_one_counts(store: Store) -> None:
    book = store.page.workflows
    saves = (book.save("letters", f"{n}", base=0, runs=True, at=NOW) for n in range(8))
    assert sorted(await asyncio.gather(*saves), key=str) == [1, *[None] * 7]
    assert len(await book.versions("letters")) == 1


async def test_a_deleted_document_is_gone_with_its_versions_and_runs(store: Store) -> None:
    book = store.page.workflows
    await _saved(store, "one", "two")
    await book.note_run(RUN)
    assert not await book.delete("letters", base=1)
    assert not await book.delete("other", base=0)
    assert await book.delete("letters", base=2)
    assert (await book.newest(), await book.versions("letters"), await book.text("letters", 2)) == (
        (),
        (),
        None,
    )
    assert await book.run_in(RUN.thread) is None
    assert await book.save("letters", "again", base=0, runs=True, at=NOW) == 1


async def test_a_text_with_half_a_character_is_storable(store: Store) -> None:
    await _saved(store, "ab\ud800")
    assert await store.page.workflows.text("letters", 1) == "ab?"


async def test_runs_are_listed_for_the_person_who_began_them(store: Store) -> None:
    book = store.page.workflows
    later = replace(RUN, thread=f"{ANNS}c_2", message_id="m_2", at=NOW + 5)
    owners = replace(RUN, thread="web:local:c_3")
    for run in (RUN, later, owners, replace(later, thread=f"{ANNS}c_9", name="other"), replace(RUN, at=0.0)):
        await book.note_run(run)
    assert await book.runs_of("letters", threads=ANNS, limit=9) == (later, RUN)
    assert await book.runs_of("letters", threads=ANNS, limit=1) == (later,)
    assert await book.runs_of("letters", threads="web:local:c_", limit=9) == (owners,)
    assert await book.run_in(RUN.thread) == RUN
    assert await book.run_in("web:local:c_4") is None


async def test_the_file_is_read_without_the_store(tmp_path: Path) -> None:
    path = tmp_path / "parlour.sqlite3"
    assert saved_text(path, "letters", None) is None
    store = SqliteStore(path)
    await store.open()
    await _saved(store, "one", "two", "three x")
    assert [saved_text(path, "letters", version) for version in (None, 1, 3, 4)] == [
        "two",
        "one",
        "three x",
        None,
    ]
    await store.close()
    assert saved_text(path, "letters", None) == "two"
    assert saved_text(path, "other", None) is None


async def test_an_erased_conversation_has_no_run(store: Store) -> None:
    lease = await store.acquire_lease(RUN.thread, "me", ttl_s=60, now=NOW)
    assert lease is not None
    later = replace(RUN, thread=f"{ANNS}c_2")
    for run in (RUN, later):
        await store.page.workflows.note_run(run)
    await store.page.chats.erase(RUN.thread, owner="me", fence=lease.fence, but_jobs="erasure")
    assert await store.page.workflows.runs_of("letters", threads=ANNS, limit=9) == (later,)
