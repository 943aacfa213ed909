"""What the shield stores: the audit's chain and all damage to it, labels, permissions, evaluator's calls."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from gateway.cli.audit import shown_record
from gateway.storage.audit import (
    GENESIS,
    AuditHead,
    AuditRow,
    ChainCheck,
    Damage,
    NewAuditRecord,
    chained,
    hash_of,
)
from gateway.storage.audit_check import check_audit
from gateway.storage.audit_pruning import prune_audit
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Store
from gateway.storage.postgres import PostgresStore
from gateway.storage.postgres.database import Connection
from pipeline.shield.levels import UNLABELLED, Labels, Level
from pipeline.shield.ports import Permission
from tests.contracts.conftest import Reopen

RECORDS = 200


def _record(n: int) -> NewAuditRecord:
    details = {"action": f"act_{n}", "tool": "write_file", "decision": "ALLOW", "tier": n % 4}
    return NewAuditRecord(type="action_evaluated", details=details, at=1_700_000_000.0 + n)


async def _chain(store: Store, count: int = RECORDS) -> tuple[AuditRow, ...]:
    audit = store.shield.audit
    await audit.append([_record(n) for n in range(count)])
    return await audit.listed(limit=count)


@pytest.fixture
async def chain() -> tuple[AuditRow, ...]:
    store = MemoryStore()
    await store.open()
    return await _chain(store)


def _damage(rows: tuple[AuditRow, ...] | list[AuditRow], whole: tuple[AuditRow, ...]) -> tuple[Damage, ...]:
    check = ChainCheck()
    check.feed(rows)
    return check.report(AuditHead(n=whole[-1].n, hash=whole[-1].hash)).damage


async def test_records_are_a_chain_in_the_order_of_the_calls_and_outlive_the_process(
    store: Store, reopen: Reopen
) -> None:
    audit = store.shield.audit
    first, second = audit.append([_record(1), _record(2)]), audit.append([_record(3)])
    await second
    assert first.done()
    audit = (await reopen()).shield.audit
    await audit.append([_record(4)])
    report = await check_audit(audit)
    assert (report.records, report.head.n, report.damage) == (4, 4, ())
    assert [row.n for row in await audit.newest(limit=2)] == [3, 4]
    assert [row.n for row in await audit.listed(after=1, limit=2)] == [2, 3]


async def test_an_empty_audit_is_whole(store: Store) -> None:
    report = await check_audit(store.shield.audit)
    assert (report.records, report.damage) == (0, ())


async def test_every_single_bit_change_is_found_at_its_record(chain: tuple[AuditRow, ...]) -> None:
    # Each flip is checked behind the record before it: a chain of 200 for each flip would take minutes.
    assert len(chain) == RECORDS
    for before, row in ((None, chain[0]), *list(pairwise(chain))[::25]):
        for line in _flipped(row.line):
            check = ChainCheck.after(before)
            check.feed((AuditRow(n=row.n, line=line, hash=row.hash),))
            assert check.found == {row.n: "was changed"}, line
        for hash_ in _flipped(row.hash.encode()):
            check = ChainCheck.after(before)
            check.feed((AuditRow(n=row.n, line=row.line, hash=hash_.decode("utf-8", "replace")),))
            assert check.found == {row.n: "was changed"}, hash_
        for bit in range(63):
            check = ChainCheck.after(before)
            check.feed((AuditRow(n=row.n ^ (1 << bit), line=row.line, hash=row.hash),))
            assert check.found, bit


def _flipped(data: bytes) -> Iterator[bytes]:
    """`data` with each of its bits changed, one at a time."""
    changed = bytearray(data)
    for byte in range(len(data)):
        for bit in range(8):
            changed[byte] ^= 1 << bit
            yield bytes(changed)
            changed[byte] ^= 1 << bit


async def test_a_changed_removed_or_exchanged_row_is_found_where_the_store_keeps_it(
    store: Store, tmp_path: Path
) -> None:
    """A bit of every record, each another one; then whole rows."""
    rows = list(await _chain(store))
    every = [_one_bit(row, row.n * 7) for row in rows]
    await _overwrite(store, tmp_path, every)
    report = await check_audit(store.shield.audit)
    assert [(one.n, one.problem) for one in report.damage] == [(row.n, "was changed") for row in rows]
    for at in range(0, RECORDS - 1, 20):
        one, next_ = rows[at], rows[at + 1]
        await _overwrite(store, tmp_path, [row for row in rows if row is not one])
        assert [found.n for found in (await check_audit(store.shield.audit)).damage] == [one.n]
        moved = {at: replace(next_, n=one.n), at + 1: replace(one, n=next_.n)}
        await _overwrite(store, tmp_path, [moved.get(n, row) for n, row in enumerate(rows)])
        assert [found.n for found in (await check_audit(store.shield.audit)).damage] == [one.n, next_.n]
        doubled = [*rows[: at + 1], *(replace(row, n=row.n + 1) for row in rows[at:])]
        await _overwrite(store, tmp_path, doubled)
        assert (await check_audit(store.shield.audit)).damage[0].n == one.n + 1
    await _overwrite(store, tmp_path, rows)
    assert (await check_audit(store.shield.audit)).damage == ()


def _one_bit(row: AuditRow, bit: int) -> AuditRow:
    line = bytearray(row.line)
    line[bit // 8 % len(line)] ^= 1 << bit % 8
    return replace(row, line=bytes(line))


async def _overwrite(store: Store, folder: Path, rows: list[AuditRow]) -> None:
    """Put `rows` in place of the audit's behind the store's back."""
    if isinstance(store, MemoryStore):
        store.shield.audit.rows[:] = rows
        return
    if isinstance(store, PostgresStore):
        values = [(row.n, row.line, row.hash) for row in rows]

        async def change(connection: Connection) -> None:
            await connection.execute("DELETE FROM audit")
            await connection.executemany("INSERT INTO audit VALUES ($1, $2, $3)", values)

        await store.database.write(change)
        return
    with closing(sqlite3.connect(folder / "store.db")) as db, db:
        db.execute("DELETE FROM audit")
        db.executemany("INSERT INTO audit VALUES (?, ?, ?)", [(row.n, row.line, row.hash) for row in rows])


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b"[]",
        b'{"at":1,"details":[],"n":1,"prev":"GENESIS","type":"chain_damaged"}',
        b'{"at":1,"details":{"record":"x"},"n":1,"prev":"GENESIS","type":"chain_damaged"}',
        b'{"at":1e999,"details":{"record":2},"n":1,"prev":"GENESIS","type":"chain_damaged"}',
    ],
)
async def test_a_forged_record_with_its_own_hash_is_found_and_shown(
    chain: tuple[AuditRow, ...], line: bytes
) -> None:
    line = line.replace(b"GENESIS", GENESIS.encode())
    forged = AuditRow(n=1, line=line, hash=hash_of(line))
    assert _damage([forged, *chain[1:]], chain)
    assert shown_record(forged).startswith("1  ")


async def test_every_removed_doubled_and_exchanged_record_is_found(chain: tuple[AuditRow, ...]) -> None:
    # Only the records around: a chain of 200 for each case would take long.
    def found(at: int, *rows: AuditRow) -> dict[int, str]:
        check = ChainCheck.after(chain[at - 1] if at else None)
        check.feed((*rows, *chain[at + 2 : at + 4]))
        last = chain[at : at + 4][-1]
        check.report(AuditHead(n=last.n, hash=last.hash))
        return check.found

    for at in range(RECORDS - 1):
        one, two = chain[at : at + 2]
        assert found(at, one, two) == {}
        assert one.n in found(at, two)
        assert two.n in found(at, one)
        assert found(at, one, one, two)
        assert found(at, two, one)
        # The numbers are corrected to hide the exchange.
        assert found(at, replace(two, n=one.n), replace(one, n=two.n))
    for kept in range(RECORDS):
        assert _damage(chain[:kept], chain)


async def test_a_torn_end_is_named_and_the_chain_continues_after_it(store: Store, tmp_path: Path) -> None:
    await _chain(store, 3)
    await damage_one(store, tmp_path, 3)
    audit = store.shield.audit
    await audit.append([_record(4)])
    report = await check_audit(audit)
    assert [(one.n, one.problem, one.marked_in) for one in report.damage] == [(3, "was changed", 4)]
    await audit.append([_record(5)])
    assert len((await check_audit(audit)).damage) == 1
    assert [b"chain_damaged" in row.line for row in await audit.listed(limit=9)] == [0, 0, 0, 1, 0, 0]


async def test_damage_in_the_middle_is_named_once_it_is_put_into_quarantine(
    store: Store, tmp_path: Path
) -> None:
    await _chain(store, 5)
    await damage_one(store, tmp_path, 2)
    audit = store.shield.audit
    report = await check_audit(audit)
    assert [(one.n, one.marked_in) for one in report.damage] == [(2, 0)]
    await audit.quarantine(report.damage, at=1.0)
    assert [(one.n, one.marked_in) for one in (await check_audit(audit)).damage] == [(2, 6)]


async def test_old_records_are_removed_and_the_rest_is_still_proved(store: Store, reopen: Reopen) -> None:
    await _chain(store, 9)
    audit, at = store.shield.audit, 1_700_000_000.0
    assert (await prune_audit(audit, before=at, day="d", at=at + 50)).records == 0
    done = await prune_audit(audit, before=at + 4, day="2023-11-14", at=at + 50)
    removed = (await _whole_chain())[:4]
    assert (done.records, done.through, done.hash) == (4, 4, removed[-1].hash)
    audit = (await reopen()).shield.audit
    report = await check_audit(audit)
    assert (report.records, report.damage, report.pruned) == (6, (), 4)
    (anchor,) = await audit.newest(limit=1)
    assert (
        f'"details":{{"before":"2023-11-14","hash":"{done.hash}","records":4,"through":4}}'.encode()
        in anchor.line
    )
    # The record of the first removal goes with the second one, which removes all.
    assert (await prune_audit(audit, before=at + 99, day="d", at=at + 99)).records == 6
    report = await check_audit(audit)
    assert (report.records, report.head.n, report.damage, report.pruned) == (1, 11, (), 10)
    await audit.append([_record(12)])
    assert (await check_audit(audit)).damage == ()


async def test_what_is_missing_changed_or_put_before_a_pruned_chain_is_found() -> None:
    store = MemoryStore()
    await store.open()
    whole = await _chain(store, 9)
    done = await prune_audit(store.shield.audit, before=1_700_000_004.0, day="d", at=1_700_000_050.0)
    rows = await store.shield.audit.listed(limit=99)
    assert _damage(rows, rows) == ()
    assert [(one.n, one.problem) for one in _damage(rows[1:], rows)] == [(5, "is missing")]
    assert [one.n for one in _damage(rows[:-1], rows)] == [1, 2, 3, 4, 10]
    assert _damage([whole[3], *rows], rows)
    assert [one.n for one in _damage([replace(rows[0], line=b"x"), *rows[1:]], rows)] == [5]
    other = chained(AuditHead(n=4, hash="1" * 64), [_record(4)])
    assert [one.n for one in _damage([*other, *rows[1:]], rows)] == [5, 6]
    assert done.hash == whole[3].hash


async def test_nothing_is_removed_from_a_chain_with_damage_that_no_record_names(
    store: Store, tmp_path: Path
) -> None:
    await _chain(store, 5)
    await damage_one(store, tmp_path, 2)
    audit = store.shield.audit
    done = await prune_audit(audit, before=2_000_000_000.0, day="d", at=2_000_000_000.0)
    assert (done.records, [one.n for one in done.report.damage]) == (0, [2])
    await audit.quarantine(done.report.damage, at=1_700_000_009.0)
    done = await prune_audit(audit, before=1_700_000_002.0, day="d", at=2_000_000_000.0)
    assert (done.records, (await check_audit(audit)).damage) == (2, ())


async def test_the_labels_of_a_conversation_are_kept(store: Store, reopen: Reopen) -> None:
    labels = Labels(
        level=Level.RESTRICTED, private=True, sources=("your files, salaries", "x"), suspects=("a web page",)
    )
    assert await store.shield.taints.read("ses-1") == UNLABELLED
    await store.shield.taints.write("ses-1", Labels())
    await store.shield.taints.write("ses-1", labels)
    after = await reopen()
    assert await after.shield.taints.read("ses-1") == labels
    assert await after.shield.taints.read("ses-2") == UNLABELLED


async def test_permissions_belong_to_a_person_and_a_session_and_are_taken_back(
    store: Store, reopen: Reopen
) -> None:
    book = store.shield.permissions
    one = Permission(
        id=0,
        session_id="s",
        thread="t",
        person="ada",
        type="write_file",
        target="own/a.txt",
        foreign=("a web page",),
        level=2,
        private=True,
        at=5.0,
    )
    first = await book.add(one)
    assert await book.add(replace(one, level=3)) == first
    second = await book.add(replace(one, target="own/b.txt"))
    await book.add(replace(one, person="eve"))
    book = (await reopen()).shield.permissions
    found = await book.of("s", "ada")
    assert found == (
        replace(one, id=first, level=3),
        replace(one, id=second, target="own/b.txt"),
    )
    assert await book.revoke("s", "eve", first) == 0
    assert await book.revoke("s", "ada", first) == 1
    assert [kept.id for kept in await book.of("s", "ada")] == [second]
    assert await book.revoke("s", "ada", None) == 1
    assert await book.of("s", "ada") == ()
    assert len(await book.of("s", "eve")) == 1


async def test_questions_of_the_last_hour_are_counted_for_each_person(store: Store, reopen: Reopen) -> None:
    book = store.shield.asked
    assert [await book.count("ada", f"q{n}", now=1_000.0 + n, most=2) for n in range(3)] == [
        True,
        True,
        False,
    ]
    assert await book.count("ada", "q0", now=1_002.0, most=2), "the same question counts once"
    assert await book.count("eve", "q2", now=1_002.0, most=2)
    book = (await reopen()).shield.asked
    assert not await book.count("ada", "q3", now=4_599.9, most=2)
    assert await book.count("ada", "q3", now=4_600.0, most=2), "an hour after the first one"
    assert not await book.count("ada", "q4", now=4_600.5, most=2)
    await book.forget("ada")
    assert await book.count("ada", "q4", now=4_600.5, most=1)


async def test_a_clock_that_was_set_back_lets_the_hour_begin_now(store: Store) -> None:
    book = store.shield.asked
    assert await book.count("ada", "q1", now=90_000.0, most=1)
    assert not await book.count("ada", "q2", now=1_000.0, most=1)
    assert not await book.count("ada", "q2", now=4_599.0, most=1)
    assert await book.count("ada", "q2", now=4_600.0, most=1)


async def _whole_chain() -> tuple[AuditRow, ...]:
    store = MemoryStore()
    await store.open()
    return await _chain(store, 9)


async def damage_one(store: Store, folder: Path, n: int) -> None:
    """Change record `n` behind the store's back."""
    if isinstance(store, MemoryStore):
        rows = store.shield.audit.rows
        rows[n - 1] = replace(rows[n - 1], line=rows[n - 1].line.replace(b"ALLOW", b"BLOCK"))
        return
    if isinstance(store, PostgresStore):
        changed = "UPDATE audit SET line = replace(convert_from(line, 'UTF8'), 'ALLOW', 'BLOCK')::bytea"
        await store.database.write(lambda db: db.execute(f"{changed} WHERE n = $1", n))
        return
    with closing(sqlite3.connect(folder / "store.db")) as db, db:
        db.execute("UPDATE audit SET line = CAST(replace(line, 'ALLOW', 'BLOCK') AS BLOB) WHERE n = ?", (n,))


async def test_the_evaluators_calls_are_counted_by_day_up_to_the_most_also_over_a_restart(
    store: Store, reopen: Reopen
) -> None:
    calls = store.shield.evaluator_calls
    assert await calls.take("2026-11-27", 0) is False
    assert sorted(await asyncio.gather(*(calls.take("2026-11-27", 3) for _ in range(5)))) == [
        *(False, False),
        *(True, True, True),
    ]
    calls = (await reopen()).shield.evaluator_calls
    assert await calls.take("2026-11-27", 3) is False
    assert await calls.take("2026-11-27", 4) is True
    assert await calls.take("2026-11-28", 1) is True
    # A clock that is set back finds the earlier day as it was.
    assert await calls.take("2026-11-27", 4) is False
