"""Bytes that a turn writes to disk as a chat grows, read from outside the gateway."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bench.report import median
from gateway.storage.sqlite.wal import WAL_HEADER_BYTES, WalMeter, WalState
from pipeline.domain.clock import SystemClock
from tests.support.gateway_process import GatewayProcess
from tests.support.web_client import WebChat

_TURNS = 20
_RECEIPT_S = 0.003
_CLOCK = SystemClock()
_TABLES = {"inbox": "seq", "log": "id", "outbox": "id"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Bytes for one turn after `history` messages, the mean of twenty."""

    history: int
    rows: float
    """The values in the rows that the turn added: text as UTF-8, a number as 8 bytes."""
    wal: float
    """What SQLite wrote to its write-ahead log for them: whole pages, with frame headers."""
    commits: float
    """Transactions of a turn, the median."""


async def measure_written(gateway: GatewayProcess, histories: tuple[int, ...]) -> list[Written]:
    """Talk in one chat until each length of history is reached, and measure the turns after it."""
    found: list[Written] = []
    meter = WalMeter(gateway.store_path)
    meter.start()
    async with WebChat() as chat:
        await chat.connect(gateway.url, gateway.token)
        turns = 0
        for history in histories:
            while 2 * turns < history:
                await _turn(chat, turns)
                meter.note()
                turns += 1
            wal, rows = meter.total(), _row_bytes(gateway.store_path)
            commits: list[float] = []
            for _ in range(_TURNS):
                before = meter.note()
                await _turn(chat, turns)
                after = meter.note()
                if before is not None and after is not None and before.generation == after.generation:
                    commits.append(_commits(gateway.store_path, before, after))
                turns += 1
            found.append(
                Written(
                    history=history,
                    rows=(_row_bytes(gateway.store_path) - rows) / _TURNS,
                    wal=(meter.total() - wal) / _TURNS,
                    commits=median(commits),
                )
            )
    return found


async def _turn(chat: WebChat, number: int) -> None:
    """One turn, its receipt included."""
    client_id = f"w{number:06}"
    await chat.send_text(client_id, "What is the weather like in Vienna?")
    message_id = await chat.accepted(client_id)
    await chat.terminal(message_id)
    # The receipt is written after the client was notified; its pages belong to this turn.
    await _CLOCK.sleep(_RECEIPT_S)


def _commits(database: Path, before: WalState, after: WalState) -> int:
    """The transactions between two states of one generation: the last frame of each has a size field."""
    with database.with_name(database.name + "-wal").open("rb") as log:
        fields = []
        for number in range(before.frames, after.frames):
            log.seek(WAL_HEADER_BYTES + number * after.frame_bytes + 4)
            fields.append(log.read(4))
    return sum(any(field) for field in fields)


def _row_bytes(path: Path) -> int:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return sum(
            _size(value)
            for table, key in _TABLES.items()
            for row in db.execute(f"SELECT * FROM {table} ORDER BY {key}")
            for value in row
        )


def _size(value: object) -> int:
    if value is None:
        return 0
    return len(value.encode()) if isinstance(value, str) else 8
