"""What a turn is given of its owner's memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import ConfigurationError
from pipeline.memory.embedding import HashedEmbedder
from pipeline.memory.loading import LoadedMemory, load_memory, render_entry
from pipeline.memory.modes import NoMemory, book_for, lowered, require_incognito_support
from pipeline.memory.ports import FactVector, MemoryWrites
from pipeline.memory.recall import fact_text
from pipeline.memory.values import MemoryMode, Profile
from tests.contracts.memory_values import ANN, BEN, DAY_S, NOW, PROFILE, arc, fact, held, write

KEYS = {
    *("load_memory_ms", "semantic_hits", "semantic_store_size", "episodic_hits", "episodic_store_size"),
    *("procedural_count", "proactive_recall", "retrieval_path"),
}


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    opened = MemoryStore()
    await opened.open()
    yield opened
    await opened.close()


async def _load(
    store: MemoryStore,
    question: str = "How is my exam?",
    *,
    owner: str = ANN,
    first_turn: bool = False,
    mode: MemoryMode = "local",
    embedder: HashedEmbedder | None = None,
) -> LoadedMemory:
    clock = ManualClock(NOW)
    return await load_memory(
        store.memories, owner, question, first_turn=first_turn, clock=clock, mode=mode, embedder=embedder
    )


async def test_in_incognito_the_store_is_not_touched(store: MemoryStore) -> None:
    await store.close()
    loaded = await _load(store, mode="incognito", embedder=HashedEmbedder())
    assert (loaded.entries, loaded.rules) == ((), ())
    assert loaded.diagnostics["retrieval_path"] == "incognito"
    assert set(loaded.diagnostics) == KEYS
    assert loaded.summary


async def test_without_memory_nothing_is_embedded(store: MemoryStore) -> None:
    await write(store, BEN, fact("f1", "My exam is on Monday"))
    embedder = HashedEmbedder()
    loaded = await _load(store, embedder=embedder)
    assert embedder.texts == []
    assert loaded.entries == ()
    assert loaded.diagnostics["retrieval_path"] == "skipped_empty_store"
    assert set(loaded.diagnostics) == KEYS


async def test_rules_are_all_loaded_also_without_facts(store: MemoryStore) -> None:
    await store.memories.write_profile(ANN, PROFILE)
    loaded = await _load(store)
    assert [one.id for one in loaded.rules] == ["r1", "r2"]
    assert loaded.proactive_recall
    assert loaded.diagnostics["procedural_count"] == 2
    assert loaded.diagnostics["retrieval_path"] == "skipped_empty_store"


async def test_nothing_is_loaded_of_a_person_who_turned_memory_off(store: MemoryStore) -> None:
    await write(store, ANN, fact("f1", "My exam is on Monday"))
    await store.memories.write_profile(ANN, replace(PROFILE, enabled=False))
    loaded = await _load(store, first_turn=True)
    assert (loaded.entries, loaded.rules, loaded.enabled) == ((), (), False)
    assert loaded.diagnostics["retrieval_path"] == "skipped_disabled"


async def test_at_most_five_facts_and_the_arcs_before_them(store: MemoryStore) -> None:
    facts = [fact(f"f{n}", f"exam number {n}", session=f"t{n}") for n in range(9)]
    await write(store, ANN, *facts, arc=arc("s1", "Ann fears her exam."))
    loaded = await _load(store)
    kinds = [entry["type"] for entry in loaded.entries if not isinstance(entry, str)]
    assert kinds == ["episodic", *["semantic"] * 5]
    assert loaded.diagnostics["semantic_hits"] == 5
    assert loaded.diagnostics["semantic_store_size"] == 9
    assert (loaded.diagnostics["episodic_hits"], loaded.diagnostics["episodic_store_size"]) == (1, 1)
    assert loaded.diagnostics["retrieval_path"] == "words"
    assert set(loaded.diagnostics) == KEYS


async def test_superseded_and_dormant_facts_are_not_loaded(store: MemoryStore) -> None:
    await write(store, ANN, *(fact(f"f{n}", f"exam {n}") for n in range(3)))
    await write(store, ANN, key="k", supersedes=(("f0", "f1"),), dormant=("f2",))
    loaded = await _load(store)
    assert [entry["object"] for entry in loaded.entries if not isinstance(entry, str)] == ["f1"]


async def test_the_first_turn_catches_up_with_the_latest_session_once(store: MemoryStore) -> None:
    await write(store, ANN, key="a", arc=arc("old", "The exam of May.", ended_at=NOW - 31 * DAY_S))
    await write(store, ANN, key="b", arc=arc("mid", "The exam of June.", ended_at=NOW - 9 * DAY_S))
    await write(store, ANN, key="c", arc=arc("last", "Ann fears her exam.", ended_at=NOW - DAY_S))
    first = [
        dict(entry) for entry in (await _load(store, first_turn=True)).entries if not isinstance(entry, str)
    ]
    assert [(one["summary"], one["is_catch_up"]) for one in first] == [
        ("Ann fears her exam.", True),
        ("The exam of June.", False),
    ]
    later = (await _load(store)).entries
    assert all(not entry["is_catch_up"] for entry in later if not isinstance(entry, str))
    quiet = await _load(store, "hello", first_turn=True)
    assert [entry["summary"] for entry in quiet.entries if not isinstance(entry, str)] == [
        "Ann fears her exam."
    ]


async def test_an_old_latest_session_is_caught_up_with_too(store: MemoryStore) -> None:
    await write(store, ANN, key="a", arc=arc("old", "The exam of May.", ended_at=NOW - 300 * DAY_S))
    assert len((await _load(store, "hello", first_turn=True)).entries) == 1
    assert (await _load(store)).entries == ()


async def test_if_the_embedding_fails_words_alone_decide(store: MemoryStore) -> None:
    await write(store, ANN, fact("f1", "My exam is on Monday"))
    embedder = HashedEmbedder()
    embedder.failing = True
    loaded = await _load(store, embedder=embedder)
    assert len(loaded.entries) == 1
    assert loaded.diagnostics["retrieval_path"] == "token_recall_after_embed_error"


async def test_vectors_find_what_has_no_word_of_the_question(store: MemoryStore) -> None:
    await write(store, ANN, fact("f1", "My sister lives in Leeds", about="Leeds"))
    embedder = HashedEmbedder()
    vectors = await embedder.passages([fact_text((await store.memories.facts(ANN))[0])])
    await store.memories.write_vectors("hashed", [FactVector(owner=ANN, fact_id="f1", vector=vectors[0])])
    assert (await _load(store, "Xyz")).entries == ()
    loaded = await _load(store, "Xyz", embedder=embedder)
    assert len(loaded.entries) == 1
    assert loaded.diagnostics["retrieval_path"] == "words_and_vectors"


async def test_an_owner_is_needed(store: MemoryStore) -> None:
    with pytest.raises(ValueError, match="owner"):
        await _load(store, owner="")


async def test_entries_are_rendered_as_lines(store: MemoryStore) -> None:
    await write(store, ANN, fact("f1", "My exam is on Monday"), arc=arc("s1", "Ann fears her exam."))
    assert (await _load(store)).lines == (
        "Last session (sleep): Ann fears her exam.",
        "[context] user EXPERIENCED f1 — 'My exam is on Monday'",
    )
    assert render_entry("as it is") == "as it is"
    assert render_entry({"type": "semantic", "evidence_quote": "tea"}) == "Previously noted: tea"
    episodic = {"type": "episodic", "summary": "Short.", "primary_themes": [], "is_catch_up": True}
    assert render_entry(episodic) == "Last session (untagged): Short."


def test_a_request_lowers_the_mode_and_never_raises_it() -> None:
    assert lowered("local", None) == "local"
    assert lowered("local", "incognito") == "incognito"
    assert lowered("incognito", "local") == "incognito"
    assert lowered("incognito", "synced") == "incognito"
    assert lowered("local", "synced") == "local"
    assert lowered("synced", "local") == "synced"


async def test_in_incognito_a_book_keeps_nothing_and_stays_empty(store: MemoryStore) -> None:
    await store.close()
    book = book_for("incognito", store.memories)
    writes = MemoryWrites(key="k", session_id="s", at=NOW, facts=(fact("f1", "tea"),), held=(held("h"),))
    assert (await book.write(ANN, writes)).facts == 0
    await book.write_profile(ANN, PROFILE)
    assert await book.profile(ANN) == Profile()
    assert await book.facts(ANN) == ()
    assert await book.held(ANN, "s") == ()
    assert (await book.everything(ANN)).facts == ()
    assert book_for("local", store.memories) is store.memories


def test_only_a_class_that_declares_it_itself_is_used_in_incognito(store: MemoryStore) -> None:
    class Inherits(NoMemory):
        pass

    require_incognito_support(NoMemory())
    for used in (Inherits(), store.memories, object()):
        with pytest.raises(ConfigurationError, match="supports_incognito"):
            require_incognito_support(used)
