"""`parlour crises`: show the records of crisis responses and their counts, and keep one longer, also
beside a running gateway."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from adapters.formatting.visible import visible
from gateway.cli.graph import write_out
from gateway.config import environment, load
from gateway.runtime.data_dir import STORE_FILE
from gateway.storage.crises import CrisisBook, CrisisDay, CrisisRecord
from gateway.storage.sqlite.crises import SqliteCrises
from gateway.storage.sqlite.offline import beside
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.errors import ConfigurationError

T = TypeVar("T")

_DAY_S = 86_400
_ID_CHARS = 12
_MOST = 10_000


def run_crises(options: argparse.Namespace, clock: Clock | None = None) -> int:
    """Run the command with its parsed `options`. Raises ConfigurationError and StorageError."""
    settings = load(options.config, environment(), options.overrides, secrets=False)
    if settings.storage.kind == "memory":
        raise ConfigurationError('storage.kind: records in memory cannot be seen from outside; use "sqlite"')
    if not 1 <= options.limit <= _MOST:
        raise ConfigurationError(f"--limit: must be 1 to {_MOST}")
    folder = settings.data.dir
    if options.action == "keep":
        return _keep(folder, options, (clock or SystemClock()).now())
    if options.action == "days":
        return _show(_in_book(folder, lambda book: book.days()), as_json=options.json)
    found = _in_book(folder, lambda book: book.listed(limit=options.limit))
    return _show(found, as_json=options.json)


def _show(found: Sequence[CrisisRecord | CrisisDay], *, as_json: bool) -> int:
    if not found and not as_json:
        write_out("no crisis response is recorded\n")
    for one in found:
        line = _line(one) if isinstance(one, CrisisRecord) else _day_line(one)
        write_out(f"{json.dumps(asdict(one), ensure_ascii=False) if as_json else line}\n")
    return 0


def _keep(folder: Path, options: argparse.Namespace, now: float) -> int:
    if options.days < 1 or not options.because.strip() or not options.id:
        raise ConfigurationError("keep: name the record's ID, --days N and --because TEXT")

    async def kept(book: CrisisBook) -> str:
        matching = [one.id for one in await book.listed(limit=_MOST) if one.id.startswith(options.id)]
        if len(matching) != 1:
            raise ConfigurationError(
                f"{options.id!a}: {len(matching)} records begin so; write more of the ID"
            )
        await book.keep(matching[0], until=now + options.days * _DAY_S, because=options.because.strip())
        return matching[0]

    record = _in_book(folder, kept)
    write_out(f"{record[:_ID_CHARS]} is kept until {_time(now + options.days * _DAY_S)} (UTC)\n")
    return 0


def _line(one: CrisisRecord) -> str:
    parts = [one.id[:_ID_CHARS], _time(one.at), f"level {one.level}", one.path, one.reason]
    parts.append("off the record" if one.user is None else one.user)
    if not one.completed:
        parts.append("fixed words")
    if one.kept_until is not None:
        parts.append(f"kept until {_time(one.kept_until)}: {one.kept_because}")
    return visible("  ".join(parts))


def _day_line(one: CrisisDay) -> str:
    line = f"{one.day}  level {one.level}  {one.path}  {one.events} responses"
    if one.events:
        line += f", {100 * one.completed / one.events:.0f} % as they should be"
    return f"{line}, {one.llm_failures} failures of the model" if one.llm_failures else line


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def _in_book(folder: Path, ask: Callable[[CrisisBook], Awaitable[T]]) -> T:
    async def asked() -> T:
        async with beside(folder / STORE_FILE, SqliteCrises) as book:
            return await ask(book)

    return asyncio.run(asked())
