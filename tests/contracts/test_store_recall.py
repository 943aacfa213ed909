"""Recall on every store: by words in several languages, with neighbouring turns, and by vectors."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Store
from gateway.storage.sqlite import SqliteStore
from pipeline.memory.embedding import HashedEmbedder
from pipeline.memory.ports import FactVector, Question
from pipeline.memory.recall import fact_text, token_recall
from pipeline.memory.values import Fact
from tests.contracts.memory_values import ANN, BEN, DAY_S, NOW, arc, fact, found, kept, write

TEXTS = (
    ("en", "My sister Clara lives in Leeds with two cats", "where does my sister live?"),
    ("forms", "I was running along the river each morning", "do I run?"),
    ("de", "Ich schlafe schlecht, wenn ich spät Kaffee trinke", "Schlief ich nach dem KAFFEE schlecht?"),
    ("accents", "Ma mère habite à Orléans", "ou habite ma mere"),
    ("es", "Mi perro se llama Tobías y duerme mucho", "¿cómo se llama mi perro?"),
    ("zh", "我的妹妹住在上海", "妹妹住在哪里"),
    ("ja", "母は大阪で看護師をしています", "看護師は誰ですか"),
    ("ko", "저는 서울에서 고양이를 키워요", "고양이"),
)


async def _remember_all(store: Store) -> None:
    facts = [fact(name, text, session=f"s-{name}") for name, text, _ in TEXTS]
    await write(store, ANN, *facts)


@pytest.mark.parametrize(("name", "question"), [(name, question) for name, _, question in TEXTS])
async def test_a_fact_is_found_in_its_language(store: Store, name: str, question: str) -> None:
    await _remember_all(store)
    assert (await found(store, ANN, question))[0] == name


@pytest.mark.parametrize("question", ["", "  ", "what is it?", "…", '" OR *', "你", "NEAR(zzz"])
async def test_a_question_without_content_words_finds_nothing(store: Store, question: str) -> None:
    await _remember_all(store)
    assert await found(store, ANN, question) == []


async def test_equal_facts_come_in_the_order_in_which_they_were_added(store: Store) -> None:
    facts = [fact(f"f{n}", "green tea", session=f"s{n}", about="tea") for n in range(4)]
    for n, one in enumerate(facts):
        await write(store, ANN, one, key=f"k{n}")
    assert await found(store, ANN, "tea") == ["f0"], "the others said the same"
    for n in range(4, 8):
        await write(store, ANN, fact(f"f{n}", "black tea", session=f"s{n}", about=f"cup{n}"))
    assert (await found(store, ANN, "black tea"))[:4] == ["f4", "f5", "f6", "f7"]


async def test_a_fact_beside_one_that_fits_comes_before_one_that_fits_as_little(store: Store) -> None:
    await write(
        store,
        ANN,
        fact("far", "The weather was fine", session="s1", turn=1),
        fact("fits", "I had an accident with the bicycle", session="s1", turn=7),
        fact("near", "My arm still hurts since then", session="s1", turn=8),
        fact("elsewhere", "My knee is fine", session="s2", turn=8),
    )
    assert await found(store, ANN, "bicycle accident") == ["fits", "near"]


async def test_two_owners_never_mix(store: Store) -> None:
    chance = random.Random(7)
    words = [f"word{n}" for n in range(12)]
    owners = [ANN, BEN, f"{ANN}\ud800", f"{ANN}\ud801"]
    mine: dict[str, set[str]] = {owner: set() for owner in owners}
    for number in range(200):
        owner = chance.choice(owners)
        match chance.randrange(6):
            case 0 if mine[owner]:
                gone = chance.choice(sorted(mine[owner]))
                assert await store.memories.forget(owner, [gone]) == 1
                mine[owner].discard(gone)
            case 1 if chance.random() < 0.2:
                await store.memories.erase(owner)
                mine[owner].clear()
            case _:
                quote = " ".join(chance.sample(words, 3))
                await write(store, owner, fact(f"f{number}", quote, turn=number))
                mine[owner].add(f"f{number}")
        asked = chance.choice(owners)
        assert set(await kept(store, asked)) == mine[asked]
        assert set(await found(store, asked, " ".join(words), limit=999)) == mine[asked]


async def test_both_stores_find_the_same_in_the_same_order(tmp_path: Path) -> None:
    chance = random.Random(11)
    words = [
        f"{begin}{end}"
        for begin in ("tea", "river", "sister", "猫猫", "schlaf")
        for end in ("", "en", "s", "1")
    ]
    stores: list[Store] = [MemoryStore(), SqliteStore(tmp_path / "store.db")]
    for store in stores:
        await store.open()
    try:
        for number in range(150):
            owner = chance.choice((ANN, BEN))
            quote = " ".join(chance.choices(words, k=chance.randint(1, 9)))
            one = fact(f"f{number}", quote, session=f"s{chance.randrange(9)}", turn=chance.randrange(20))
            for store in stores:
                await write(store, owner, one)
        for _ in range(60):
            asked = " ".join(chance.choices(words, k=chance.randint(1, 5)))
            first, second = [await found(store, ANN, asked, limit=30) for store in stores]
            assert first == second, asked
    finally:
        for store in stores:
            await store.close()


async def test_no_fact_that_token_recall_admits_is_left_out(store: Store) -> None:
    chance = random.Random(3)
    words = ["tea", "river", "sister", "leeds", "猫", "上海", "sleep", "badly", "kaffee", "the", "nicht"]
    facts: list[Fact] = []
    for number in range(60):
        facts.append(fact(f"f{number}", " ".join(chance.choices(words, k=4)), turn=number * 3))
        await write(store, ANN, facts[-1])
    live = set(await kept(store, ANN))
    for _ in range(40):
        asked = " ".join(chance.choices(words, k=chance.randint(1, 4)))
        admitted = {one.id for one in facts if token_recall(asked, fact_text(one)) >= 0.33} & live
        assert admitted <= set(await found(store, ANN, asked, limit=999)), asked


async def test_arcs_are_found_by_their_words_among_recent_ones(store: Store) -> None:
    await write(store, ANN, key="a", arc=arc("s1", "Ann talked about her exam.", ended_at=NOW - 40 * DAY_S))
    await write(store, ANN, key="b", arc=arc("s2", "The exam went well.", ended_at=NOW - DAY_S))
    await write(store, ANN, key="c", arc=arc("s3", "A quarrel with Ben.", ended_at=NOW))
    since = NOW - 30 * DAY_S
    for words, expected in (("how was my exam?", ["s2"]), ("Ben", ["s3"]), ("nothing of it", [])):
        arcs = await store.memories.find_arcs(ANN, Question(text=words), since=since, limit=2)
        assert [one.session_id for one in arcs] == expected
    assert await store.memories.find_arcs(BEN, Question(text="exam"), since=0, limit=2) == ()


async def _embed(store: Store, embedder: HashedEmbedder) -> int:
    waiting = await store.memories.without_vector(embedder.model, limit=100)
    vectors = await embedder.passages([fact_text(one) for _, one in waiting])
    rows = [
        FactVector(owner=owner, fact_id=one.id, vector=vector)
        for (owner, one), vector in zip(waiting, vectors, strict=True)
    ]
    await store.memories.write_vectors(embedder.model, rows)
    return len(rows)


async def test_vectors_fill_the_places_that_words_leave(store: Store) -> None:
    await _remember_all(store)
    await write(store, BEN, fact("other", "My sister Clara lives in Leeds too"))
    embedder = HashedEmbedder()
    assert await _embed(store, embedder) == len(TEXTS) + 1
    assert await store.memories.without_vector(embedder.model, limit=9) == ()
    near = await embedder.question("My sister Clara lives in Leeds with two cats")
    question = Question(text="Kaffee schlecht", vector=near, vector_model=embedder.model)
    facts = await store.memories.find_facts(ANN, question, limit=3)
    assert [one.id for one in facts][:2] == ["de", "en"]
    other = Question(text="Kaffee", vector=near, vector_model="another model")
    assert [one.id for one in await store.memories.find_facts(ANN, other, limit=3)] == ["de"]
    short = Question(text="Kaffee", vector=near[:5], vector_model=embedder.model)
    assert [one.id for one in await store.memories.find_facts(ANN, short, limit=3)] == ["de"]


async def test_vectors_of_another_model_count_as_none_and_are_replaced(store: Store) -> None:
    await _remember_all(store)
    await _embed(store, HashedEmbedder("first"))
    assert await _embed(store, HashedEmbedder("second")) == len(TEXTS)
    assert len(await store.memories.without_vector("first", limit=99)) == len(TEXTS)
    await store.memories.forget(ANN, ["en"])
    gone = FactVector(owner=ANN, fact_id="en", vector=(1.0, 0.0))
    await store.memories.write_vectors("second", [gone, FactVector(owner=BEN, fact_id="de", vector=(1.0,))])
    assert await store.memories.without_vector("second", limit=99) == ()
