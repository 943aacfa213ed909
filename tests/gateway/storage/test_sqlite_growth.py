"""No cost of a turn grows with the history: neither the bytes written nor the rows looked at."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from gateway.storage.ports import RecordKind
from gateway.storage.sqlite import SqliteStore, inbox, log, outbox
from tests.contracts.store_values import NOW, THREAD, entry, lease_on, record, reply, turn
from tests.gateway.storage.values import bytes_written


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "store.db", synchronous="NORMAL")
    await opened.open()
    yield opened
    await opened.close()


async def _turns(store: SqliteStore, first: int, count: int) -> None:
    lease = await lease_on(store)
    for number in range(first, first + count):
        message = f"msg-{number:06}"
        accepted = await store.accept(entry(f"{number:06}"))
        await store.start_attempt(lease, accepted.seq)
        await store.append(
            lease, [record("user", message=message, text="hello"), record("step", message=message)]
        )
        commit = turn(
            accepted.seq,
            record("assistant", message=message, text="hello to you"),
            outbox=(reply(f"{message}:answer", message=message),),
        )
        (row_id,) = (await store.commit_turn(lease, commit)).outbox_ids
        await store.mark_sending(lease, row_id)
        await store.mark_sent(lease, row_id, "native", NOW)


async def test_a_turn_writes_no_more_after_a_long_history(store: SqliteStore) -> None:
    costs = {}
    done = 0
    for history in (10, 100, 600):
        await _turns(store, done, history - done)
        before = bytes_written(store)
        await _turns(store, history, 20)
        costs[history] = (bytes_written(store) - before) / 20
        done = history + 20
    assert costs[10] > 1_000
    assert max(costs.values()) < min(costs.values()) * 1.25


def _reading(
    *,
    after: int = 0,
    kinds: Sequence[RecordKind] | None = None,
    session_id: str | None = None,
    message_id: str | None = None,
    limit: int | None = None,
) -> tuple[str, list[str | int]]:
    return log.read_statement(
        THREAD, after=after, kinds=kinds, session_id=session_id, message_id=message_id, limit=limit
    )


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ((inbox.OPEN_ENTRIES, [THREAD, 1]), "inbox_open"),
        ((log.CURRENT_SESSION, [THREAD]), "log_session"),
        ((outbox.ALL_OPEN, []), "outbox_open"),
        ((outbox.OPEN_OF_THREAD, [THREAD]), "outbox_open"),
        (_reading(after=5), "log_thread"),
        (_reading(limit=50), "log_thread"),
        (_reading(message_id="msg-1"), "log_message"),
        (_reading(message_id="msg-1", kinds=["step"]), "log_message"),
        (_reading(session_id="s", kinds=["user", "assistant"], limit=50), "log_visible"),
    ],
)
async def test_a_query_finds_its_rows_by_an_index(
    store: SqliteStore, statement: tuple[str, list[str | int]], index: str
) -> None:
    sql, values = statement
    plan = await store._reader.submit(
        lambda db: [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + sql, values)]
    )
    assert any(f"INDEX {index}" in line for line in plan), plan
    tables_scanned = [line for line in plan if line.startswith("SCAN") and f"INDEX {index}" not in line]
    assert tables_scanned == []
