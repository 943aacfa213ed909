"""The stores alone, in this process: accepting, and the writes of a whole turn. Postgres runs beside it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from bench.report import Report, median, percentile, scratch_folder
from gateway.storage.ports import (
    Lease,
    NewEntry,
    NewOutboxRow,
    NewRecord,
    RecordKind,
    Store,
    TurnCommit,
)
from gateway.storage.postgres import PostgresStore
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.clock import SystemClock
from tests.support.postgres_server import NoServer, postgres_server

_ALONE = 1500
_CALLERS = 50
_EACH = 100
_TURNS = 500
_SHORT = 25
"""By what the numbers of calls are divided for a look."""
_AT = 1_700_000_000.0
_QUESTION = "Hello there, what is the weather like today in Vienna?"
_ANSWER = "It is sunny in Vienna, about 24 degrees, with light wind from the west."
_THREAD = "web:local:c1"
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    alone_p50_us: float
    alone_p99_us: float
    together_per_s: float
    turn_us: float
    turn_cpu_us: float


async def run(*, short: bool = False) -> Report:
    """SQLite with both settings of `storage.synchronous`, and Postgres where its server can be started.
    `short` has few calls of each kind, and its figures mean little."""
    share = _SHORT if short else 1
    with scratch_folder() as folder:
        full = await _measure(SqliteStore(folder / "full.sqlite3", synchronous="FULL"), share)
        normal = await _measure(SqliteStore(folder / "normal.sqlite3", synchronous="NORMAL"), share)
    postgres = await _postgres(share)
    columns = [_words(one) for one in (full, normal, postgres) if one is not None]
    rows = [(name, *(column[name] for column in columns)) for name in columns[0]]
    more = (
        {}
        if postgres is None
        else {
            "accepts_per_s_postgres": round(postgres.together_per_s),
            "turn_us_postgres": round(postgres.turn_us),
            "turn_cpu_us_postgres": round(postgres.turn_cpu_us),
        }
    )
    return Report(
        bench="store",
        title="store: SQLite in WAL mode with group commit, and Postgres in batches",
        head=("", "full", "normal", *(() if postgres is None else ("Postgres",))),
        rows=rows,
        notes=(
            "a turn: accept, attempt and question, answer with its outbox row, sent; four commits",
            "full waits for the disk at each commit; on a virtual disk that may be a cheap promise",
            "Postgres keeps its files in memory here, and its own processor time is not counted",
        ),
        figures={
            "accept_p50_us": round(full.alone_p50_us),
            "accept_p99_us": round(full.alone_p99_us),
            "accepts_per_s": round(full.together_per_s),
            "accepts_per_s_normal": round(normal.together_per_s),
            "turn_us": round(full.turn_us),
            "turn_us_normal": round(normal.turn_us),
            "turn_cpu_us": round(full.turn_cpu_us),
            "turn_cpu_us_normal": round(normal.turn_cpu_us),
            **more,
        },
    )


async def _postgres(share: int) -> _Figures | None:
    try:
        with postgres_server() as url:
            return await _measure(PostgresStore(url), share)
    except NoServer:
        return None


def _words(found: _Figures) -> dict[str, str]:
    return {
        "accept, one caller: p50": f"{found.alone_p50_us:.0f} µs",
        "accept, one caller: p99": f"{found.alone_p99_us:.0f} µs",
        f"accept, {_CALLERS} callers": f"{found.together_per_s:.0f} a second",
        "all writes of a turn, time": f"{found.turn_us:.0f} µs",
        "all writes of a turn, processor": f"{found.turn_cpu_us:.0f} µs",
    }


async def _measure(store: Store, share: int) -> _Figures:
    turns = _TURNS // share
    await store.open()
    try:
        alone = [await _timed_accept(store, f"a{number}") for number in range(_ALONE // share)]
        together = await _accept_together(store, _EACH // share)
        lease = await store.acquire_lease(_THREAD, "bench", ttl_s=3600, now=_AT)
        if lease is None:
            raise RuntimeError("a new store refused a lease")
        began, cpu = _CLOCK.monotonic(), time.process_time()
        for number in range(turns):
            await _turn(store, lease, number)
        took, cpu_took = _CLOCK.monotonic() - began, time.process_time() - cpu
    finally:
        await store.close()
    return _Figures(
        alone_p50_us=median(alone),
        alone_p99_us=percentile(alone, 0.99),
        together_per_s=together,
        turn_us=took / turns * 1e6,
        turn_cpu_us=cpu_took / turns * 1e6,
    )


async def _timed_accept(store: Store, key: str) -> float:
    began = _CLOCK.monotonic()
    await store.accept(_entry(key, "web:local:alone"))
    return (_CLOCK.monotonic() - began) * 1e6


async def _accept_together(store: Store, each: int) -> float:
    async def caller(name: int) -> None:
        for number in range(each):
            await store.accept(_entry(f"b{name}-{number}", f"web:local:b{name}"))

    began = _CLOCK.monotonic()
    async with asyncio.TaskGroup() as group:
        for name in range(_CALLERS):
            group.create_task(caller(name))
    return _CALLERS * each / (_CLOCK.monotonic() - began)


async def _turn(store: Store, lease: Lease, number: int) -> None:
    accepted = await store.accept(_entry(f"t{number}", _THREAD))
    message_id = accepted.message_id
    await store.append(lease, [_record("user", message_id, _QUESTION)], attempt=accepted.seq)
    row = NewOutboxRow(key=message_id, message_id=message_id, body={"role": "assistant"}, created_at=_AT)
    commit = TurnCommit(
        seq=accepted.seq,
        outcome="answered",
        records=(_record("assistant", message_id, _ANSWER),),
        outbox=(row,),
        at=_AT,
    )
    committed = await store.commit_turn(lease, commit)
    await store.mark_sent(lease, committed.outbox_ids[0], "1", _AT)


def _entry(key: str, thread: str) -> NewEntry:
    return NewEntry(
        dedupe_key=key,
        thread=thread,
        message_id=f"m_{key}",
        kind="message",
        body={"text": _QUESTION},
        received_at=_AT,
    )


def _record(kind: RecordKind, message_id: str, text: str) -> NewRecord:
    return NewRecord(kind=kind, session_id="ses_1", message_id=message_id, body={"text": text}, at=_AT)
