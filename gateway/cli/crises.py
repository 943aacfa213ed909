"""`parlour crises`: show the records of crisis responses and their counts, and keep one longer, also
beside a running gateway."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TypeVar

from adapters.formatting.visible import visible
from gateway.cli.graph import write_out
from gateway.cli.stored_books import StorePlace, store_place, stored_books
from gateway.config import environment, load
from gateway.storage.crises import CrisisBook, CrisisDay, CrisisRecord
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.errors import ConfigurationError

T = TypeVar("T")

_DAY_S = 86_400
_ID_CHARS = 12
_MOST = 10_000


def run_crises(options: argparse.Namespace, clock: Clock | None = None) -> int:
    """Run the command with its parsed `options`. Raises ConfigurationError and StorageError."""
    settings = load(options.config, environment(), options.overrides, secrets=False)
    place = store_place(settings, "records")
    if not 1 <= options.limit <= _MOST:
        raise ConfigurationError(f"--limit: must be 1 to {_MOST}")
    if options.action == "keep":
        return _keep(place, options, (clock or SystemClock()).now())
    if options.action == "days":
        return _show(_in_book(place, lambda book: book.days()), as_json=options.json)
    found = _in_book(place, lambda book: book.listed(limit=options.limit))
    return _show(found, as_json=options.json)


def _show(found: Sequence[CrisisRecord | CrisisDay], *, as_json: bool) -> int:
    if not found and not as_json:
        write_out("no crisis response is recorded\n")
    for one in found:
        line = _line(one) if isinstance(one, CrisisRecord) else _day_line(one)
        write_out(f"{json.dumps(asdict(one), ensure_ascii=False) if as_json else line}\n")
    return 0


def _keep(place: StorePlace, options: argparse.Namespace, now: float) -> int:
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

    record = _in_book(place, kept)
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


def _in_book(place: StorePlace, ask: Callable[[CrisisBook], Awaitable[T]]) -> T:
    async def asked() -> T:
        async with stored_books(place) as books:
            return await ask(books.crises)

    return asyncio.run(asked())
