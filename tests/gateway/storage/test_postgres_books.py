"""The books of the Postgres store: two processes at once, and what only Postgres refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import asyncpg
import pytest

from gateway.storage.audit import NewAuditRecord
from gateway.storage.audit_check import check_audit
from gateway.storage.crises import CrisisRecord
from gateway.storage.identities import Identity, JoinRequest, LinkCode, TryLimits
from gateway.storage.pairings import PairedChat, PairingRequest
from gateway.storage.postgres import crises
from gateway.storage.postgres.books import PostgresBooks
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.search import PostgresSearch
from gateway.storage.speech import SpeakerKey
from gateway.storage.usage import Spent
from pipeline.memory.ports import MemoryWrites, ProfileChanged, Question
from pipeline.memory.values import Profile
from tests.contracts.memory_values import ANN, fact, rule
from tests.support.looks import look_again

NOW = 1_796_000_000.0
THREAD = "telegram:main:a"
ME = Identity(channel="telegram", account="main", user="ann")


@pytest.fixture
async def both(postgres_url: str) -> AsyncIterator[tuple[PostgresBooks, PostgresBooks]]:
    """The books as two processes have them open."""
    databases = [Database(postgres_url), Database(postgres_url)]
    for one in databases:
        await one.open()
    yield PostgresBooks(databases[0]), PostgresBooks(databases[1])
    for one in databases:
        await one.close()


Both = tuple[PostgresBooks, PostgresBooks]


async def test_the_use_that_two_processes_add_in_any_order_is_counted_in_one_sum(both: Both) -> None:
    scopes = ["everybody", "chat", "ann"]
    spent = Spent(tokens=3, cost=0.5)
    await asyncio.gather(
        *(both[n % 2].usage.add("2026-11-27", scopes[:: 1 if n % 2 else -1], spent) for n in range(60))
    )
    used = await both[0].usage.of("2026-11-27", scopes)
    assert used == dict.fromkeys(scopes, Spent(tokens=180, cost=30.0))
    await both[1].usage.add("2026-11-27", ["ann", "ann"], spent)
    assert (await both[0].usage.of("2026-11-27", ["ann"]))["ann"].tokens == 186


async def test_the_audit_of_two_processes_is_one_whole_chain(both: Both) -> None:
    def named(n: int) -> NewAuditRecord:
        return NewAuditRecord(type="action", details={"n": n}, at=NOW + n)

    await asyncio.gather(*(both[n % 2].shield.audit.append([named(n), named(n)]) for n in range(40)))
    report = await check_audit(both[0].shield.audit)
    assert (report.records, report.head.n, report.damage) == (80, 80, ())


async def test_a_limit_holds_for_both_processes_together(both: Both) -> None:
    calls = [both[n % 2].shield.evaluator_calls.take("2026-11-27", 5) for n in range(12)]
    assert sum(await asyncio.gather(*calls)) == 5
    asked = [both[n % 2].shield.asked.count("ann", f"q{n}", now=NOW, most=4) for n in range(12)]
    assert sum(await asyncio.gather(*asked)) == 4
    requests = [both[n % 2].pairings.ask(_request(f"u{n}"), limit=3, again_after_s=60) for n in range(12)]
    assert sum(await asyncio.gather(*requests)) == 3


def _request(user: str) -> PairingRequest:
    place = PairedChat(channel="telegram", account="main", chat="c", user=user)
    return PairingRequest(place=place, name="N\0", code_hash=user, asked_at=NOW, expires_at=NOW + 60)


async def test_a_code_that_both_processes_are_sent_is_used_once(both: Both) -> None:
    assert await both[0].pairings.ask(_request("ann"), limit=9, again_after_s=60)
    paired = await asyncio.gather(*(both[n % 2].pairings.pair("ann", now=NOW) for n in range(6)))
    assert [one.name for one in paired if one is not None] == ["N?"]
    code = LinkCode(identity=ME, thread=THREAD, code_hash="c", issued_at=NOW, expires_at=NOW + 9)
    await both[0].identities.issue(code, limit=9)
    limits = TryLimits(window_s=9, identity=9, everybody=99)
    joins = [both[n % 2].identities.join(_join(f"u{n}"), limits) for n in range(6)]
    statuses = sorted(one.status for one in await asyncio.gather(*joins))
    assert statuses == ["joined", *["wrong"] * 5]


def _join(user: str) -> JoinRequest:
    return JoinRequest(
        identity=Identity(channel="slack", account="main", user=user),
        thread=f"slack:main:{user}",
        message_id=f"m-{user}",
        code_hash="c",
        new_person="person:p1",
        most=9,
        at=NOW,
        day="2026-11-27",
    )


async def test_of_two_changes_of_one_version_one_is_refused(both: Both) -> None:
    saves = [both[n % 2].page.workflows.save("w", f"text {n}", base=0, runs=True, at=NOW) for n in range(4)]
    assert sorted(await asyncio.gather(*saves), key=str) == [1, None, None, None]
    profile = Profile(rules=(rule("r1"),))
    puts = [both[n % 2].memories.write_profile(ANN, profile) for n in range(4)]
    results = await asyncio.gather(*puts, return_exceptions=True)
    assert sum(isinstance(one, ProfileChanged) for one in results) == 3
    writes = MemoryWrites(key="k", session_id="s", at=NOW, facts=(fact("f1", "green tea"),))
    written = await asyncio.gather(*(both[n % 2].memories.write(ANN, writes) for n in range(4)))
    assert sorted((one.facts, one.repeated) for one in written) == [(0, True)] * 3 + [(1, False)]


async def test_what_postgres_cannot_hold_is_stored_with_marks_in_its_place(both: Both) -> None:
    books = both[0]
    speaker = SpeakerKey(channel="web", account="site", user="a\0b\ud800")
    await books.voices.remember_language(speaker, "de\0")
    assert (await books.voices.preferences_of(speaker)).language == "de?"
    await books.voices.keep_buffer("k\0", {"text": "a\0b\ud800"}, at=NOW)
    assert await books.voices.buffers() == (("k?", {"text": "a\0b\ud800"}),)
    owner = "own\0er"
    writes = MemoryWrites(key="k\0", session_id="s\0", at=NOW, facts=(fact("f", "green tea\0 \ud800"),))
    assert (await books.memories.write(owner, writes)).facts == 1
    found = await books.memories.find_facts(owner, Question(text="tea"), limit=1)
    assert [one.evidence_quote for one in found] == ["green tea\0 \ud800"]


_ENTRY = """
    INSERT INTO inbox (dedupe_key, thread, message_id, kind, body, received_at, attempts)
    SELECT $2, id, $2, 'message', $3, 0, $4 FROM threads WHERE key = $1 RETURNING seq"""
_SAID = """
    INSERT INTO log (thread, kind, session_id, message_id, body, at)
    SELECT id, 'user', 's', $2, $3, 0 FROM threads WHERE key = $1 RETURNING id"""


async def _say(db: Connection, key: str, text: str, *, author: str = "ann") -> int:
    """A message of a person, in the store's own form; the id of its record."""
    await db.execute("INSERT INTO threads (key) VALUES ($1) ON CONFLICT DO NOTHING", THREAD)
    await db.fetchval(_ENTRY, THREAD, key, f'{{"author":"{author}","text":{text}}}', 0)
    return int(await db.fetchval(_SAID, THREAD, key, f'{{"text":{text}}}'))


@pytest.fixture
async def raw(postgres_url: str) -> AsyncIterator[Connection]:
    """A connection that changes the tables behind the books."""
    connection = await asyncpg.connect(postgres_url, server_settings={"search_path": "parlour"})
    yield connection
    await connection.close()


async def _found(search: PostgresSearch, words: str) -> list[str]:
    return [one.text for one in await search.find(words, (ME,), limit=9)]


async def test_words_of_any_length_and_texts_with_forbidden_characters_are_found(
    both: Both, raw: Connection
) -> None:
    search = both[0].search
    await _say(raw, "1", r'"tea \u0000 \ud800 end"')
    assert await _found(search, "tea end") == ["tea \0 \ud800 end"]
    await _say(raw, "2", f'"{"x" * 3_000} long"')
    assert len(await _found(search, f"{'x' * 2_900} lon")) == 1
    many = " ".join(f"w{n:09d}" for n in range(120_000))
    await _say(raw, "3", f'"{many}"')
    assert len(await _found(search, "w000000042")) == 1, "the words of a megabyte, from the beginning"
    await raw.execute("UPDATE inbox SET body = 'no json' WHERE message_id = '3'")
    assert len(await _found(search, "w000000042")) == 1, "an entry that is no JSON has no author"


async def test_words_that_are_forgotten_while_they_are_indexed_are_not_found(
    both: Both, raw: Connection, postgres: Database
) -> None:
    record = await _say(raw, "1", '"secret tea"')
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks, raw.transaction():
        await raw.execute("UPDATE log SET body = '{}' WHERE id = $1", record)
        searching = tasks.create_task(_found(both[0].search, "secret"))
        while not await postgres.read(lambda db: db.fetchval(waiting)):
            await look_again()
    assert searching.result() == []
    assert await raw.fetchval("SELECT count(*) FROM said WHERE words @@ 'secret'::tsquery") == 0


async def test_an_entry_that_a_living_process_works_on_was_cut_off_by_no_death(
    both: Both, raw: Connection
) -> None:
    lease = "INSERT INTO threads (key, owner, expires_at) VALUES ($1, 'p', $2)"
    for key, expires_at in ((THREAD, 9e15), ("telegram:main:b", 1.0)):
        await raw.execute(lease, key, expires_at)
    seqs = [await raw.fetchval(_ENTRY, key, key, "{}", 1) for key in (THREAD, "telegram:main:b")]
    deaths = await both[0].deaths.note()
    assert {seq: (one.total, one.alone) for seq, one in deaths.items()} == {seqs[1]: (1, 1)}


async def test_a_fault_of_the_crisis_tables_leaves_the_turn_whole(raw: Connection) -> None:
    record = CrisisRecord(
        id="c1",
        session="s",
        user=None,
        at=NOW,
        level=2,
        override="",
        path="deterministic",
        reason="x",
        completed=True,
        llm_failed=False,
    )
    transaction = raw.transaction()
    await transaction.start()
    assert await crises.add(raw, record)
    await raw.execute("DROP TABLE crisis_days")
    assert not await crises.add(raw, replace(record, id="c2"))
    assert await raw.fetchval("SELECT count(*) FROM crises") == 1
    await transaction.rollback()


async def test_after_an_erasure_the_tables_files_hold_none_of_the_words(
    both: Both, raw: Connection, postgres_url: str
) -> None:
    words = "quaint marmalade observatory"
    await both[0].memories.write(
        ANN, MemoryWrites(key="k", session_id="s", at=NOW, facts=(fact("f", words),))
    )
    await raw.execute("CHECKPOINT")
    assert await _in_files(raw, words)
    await both[0].memories.erase(ANN)
    await both[0].erasure.compact()
    await raw.execute("CHECKPOINT")
    assert not await _in_files(raw, words)


_FILE = """
    SELECT relname FROM pg_class WHERE relnamespace = 'parlour'::regnamespace AND relfilenode <> 0
        AND pg_relation_filepath(oid) IS NOT NULL
        AND position($1::bytea IN pg_read_binary_file(pg_relation_filepath(oid), 0, 99999999, true)) > 0"""


async def _in_files(db: Connection, words: str) -> list[str]:
    """The tables and indexes whose files hold the words."""
    return [row["relname"] for row in await db.fetch(_FILE, words.encode())]
