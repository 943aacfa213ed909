"""The SQLite store alone, in this process: accepting, and the writes of a whole turn."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from bench.report import Report, median, percentile, scratch_folder
from gateway.storage.ports import Lease, NewEntry, NewOutboxRow, NewRecord, RecordKind, TurnCommit
from gateway.storage.sqlite import SqliteStore
from gateway.storage.sqlite.connection import Synchronous
from pipeline.domain.clock import SystemClock

_ALONE = 1500
_CALLERS = 50
_EACH = 100
_TURNS = 500
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


async def run() -> Report:
    """Both settings of `storage.synchronous`, one after the other."""
    with scratch_folder() as folder:
        full = await _measure(folder / "full.sqlite3", "FULL")
        normal = await _measure(folder / "normal.sqlite3", "NORMAL")
    columns = [_words(full), _words(normal)]
    rows = [(name, columns[0][name], columns[1][name]) for name in columns[0]]
    return Report(
        bench="store",
        title="store: SQLite in WAL mode, group commit",
        head=("", "full", "normal"),
        rows=rows,
        notes=(
            "a turn: accept, attempt and question, answer with its outbox row, sent; four commits",
            "full waits for the disk at each commit; on a virtual disk that may be a cheap promise",
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
        },
    )


def _words(found: _Figures) -> dict[str, str]:
    return {
        "accept, one caller: p50": f"{found.alone_p50_us:.0f} µs",
        "accept, one caller: p99": f"{found.alone_p99_us:.0f} µs",
        f"accept, {_CALLERS} callers": f"{found.together_per_s:.0f} a second",
        "all writes of a turn, time": f"{found.turn_us:.0f} µs",
        "all writes of a turn, processor": f"{found.turn_cpu_us:.0f} µs",
    }


async def _measure(path: Path, synchronous: Synchronous) -> _Figures:
    store = SqliteStore(path, synchronous=synchronous)
    await store.open()
    try:
        alone = [await _timed_accept(store, f"a{number}") for number in range(_ALONE)]
        together = await _accept_together(store)
        lease = await store.acquire_lease(_THREAD, "bench", ttl_s=3600, now=_AT)
        if lease is None:
            raise RuntimeError("a new store refused a lease")
        began, cpu = _CLOCK.monotonic(), time.process_time()
        for number in range(_TURNS):
            await _turn(store, lease, number)
        took, cpu_took = _CLOCK.monotonic() - began, time.process_time() - cpu
    finally:
        await store.close()
    return _Figures(
        alone_p50_us=median(alone),
        alone_p99_us=percentile(alone, 0.99),
        together_per_s=together,
        turn_us=took / _TURNS * 1e6,
        turn_cpu_us=cpu_took / _TURNS * 1e6,
    )


async def _timed_accept(store: SqliteStore, key: str) -> float:
    began = _CLOCK.monotonic()
    await store.accept(_entry(key, "web:local:alone"))
    return (_CLOCK.monotonic() - began) * 1e6


async def _accept_together(store: SqliteStore) -> float:
    async def caller(name: int) -> None:
        for number in range(_EACH):
            await store.accept(_entry(f"b{name}-{number}", f"web:local:b{name}"))

    began = _CLOCK.monotonic()
    async with asyncio.TaskGroup() as group:
        for name in range(_CALLERS):
            group.create_task(caller(name))
    return _CALLERS * _EACH / (_CLOCK.monotonic() - began)


async def _turn(store: SqliteStore, lease: Lease, number: int) -> None:
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
