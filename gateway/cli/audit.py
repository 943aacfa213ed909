"""`parlour audit`: show, check, export and prune what was decided about actions, also beside a running
gateway."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from adapters.formatting.visible import visible
from gateway.cli.graph import write_out
from gateway.cli.stored_books import StorePlace, store_place, stored_books
from gateway.config import environment, load
from gateway.storage.audit import AuditBook, AuditReport, AuditRow
from gateway.storage.audit_check import check_audit
from gateway.storage.audit_pruning import prune_audit
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.errors import ConfigurationError

T = TypeVar("T")

_OK, _DAMAGED = 0, 1
_SHOWN = 50
_PAGE = 2_000


def run_audit(options: argparse.Namespace) -> int:
    """Run the command with its parsed `options`. Raises ConfigurationError and StorageError."""
    settings = load(options.config, environment(), options.overrides, secrets=False)
    place = store_place(settings, "records")
    if options.limit < 1:
        raise ConfigurationError("--limit: must be 1 or more")
    if options.action == "verify":
        return verify_audit(place)
    if options.action == "export":
        return export_audit(place, options.file)
    if options.action == "prune":
        return prune_records(place, options.before)
    return show_audit(place, limit=options.limit)


def show_audit(place: StorePlace, *, limit: int = _SHOWN) -> int:
    """Print the newest records, one line each. Exit code 0. Raises StorageError."""
    rows = _in_book(place, lambda book: book.newest(limit=limit))
    if not rows:
        write_out("the audit has no records\n")
    for row in rows:
        write_out(f"{shown_record(row)}\n")
    return _OK


def verify_audit(place: StorePlace, clock: Clock | None = None) -> int:
    """Check every record, name each damaged one and put a copy of it into quarantine. Exit code 0, or 1 if
    something is damaged. Raises StorageError."""
    at = (clock or SystemClock()).now()

    async def verified(book: AuditBook) -> AuditReport:
        report = await check_audit(book)
        if new := [one for one in report.damage if not one.marked_in]:
            await book.quarantine(new, at=at)
        return report

    report = _in_book(place, verified)
    if not report.damage:
        write_out(f"audit: {report.records} records, every one as it was written\n")
        if report.pruned:
            write_out(f"the records up to {report.pruned} were removed by `parlour audit prune`\n")
        write_out(f"the last one is {report.head.n}, its hash {report.head.hash}\n")
        return _OK
    write_out(f"audit: {report.records} records, damaged: {len(report.damage)}\n")
    for one in report.damage:
        where = f"named in record {one.marked_in}" if one.marked_in else "put into quarantine now"
        write_out(f"  record {one.n} {one.problem}; {where}\n")
    sys.stderr.write(
        "parlour: the audit was changed outside this program, or the disk has damaged it; compare it with an "
        "export or a backup. The gateway continues the chain after it\n"
    )
    return _DAMAGED


def prune_records(place: StorePlace, day: str | None, clock: Clock | None = None) -> int:
    """Remove the records from before a day (UTC, as 2026-01-31), and say which they were. Exit code 0, or 1
    if nothing is removed because the audit is damaged. Raises ConfigurationError and StorageError."""
    at = (clock or SystemClock()).now()
    try:
        before = datetime.strptime(day or "", "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise ConfigurationError(
            "--before: name the first day whose records stay, such as 2026-01-31"
        ) from None
    if before > at:
        raise ConfigurationError(f"--before: {day} is in the future")
    done = _in_book(place, lambda book: prune_audit(book, before=before, day=day or "", at=at))
    if any(not one.marked_in for one in done.report.damage):
        sys.stderr.write(
            "parlour: nothing is removed, because the audit is damaged: run `parlour audit verify` first\n"
        )
        return _DAMAGED
    if not done.records:
        write_out(f"the audit has no records from before {day}\n")
        return _OK
    write_out(f"audit: {done.records} records from before {day} removed\n")
    write_out(f"the last one was {done.through}, its hash {done.hash}\n")
    return _OK


def export_audit(place: StorePlace, target: Path | None) -> int:
    """Write all records as one JSON object for each line, each with its hash, to `target` or the output; the
    file must not exist. Exit code 0. Raises ConfigurationError and StorageError."""
    if target is None:
        _in_book(place, lambda book: _each(book, write_out))
        return _OK
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise ConfigurationError(f"{target}: cannot be written: {error.strerror or error}") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        count = _in_book(place, lambda book: _each(book, file.write))
    write_out(f"{target}: {count} records\n")
    return _OK


async def _each(book: AuditBook, write: Callable[[str], object]) -> int:
    count, after = 0, 0
    while rows := await book.listed(after=after, limit=_PAGE):
        for row in rows:
            line = row.line.decode("utf-8", "replace")
            write(json.dumps({"n": row.n, "hash": row.hash, "line": line}, ensure_ascii=False) + "\n")
        count, after = count + len(rows), rows[-1].n
    return count


def _in_book(place: StorePlace, ask: Callable[[AuditBook], Awaitable[T]]) -> T:
    async def asked() -> T:
        async with stored_books(place) as books:
            return await ask(books.audit)

    return asyncio.run(asked())


def shown_record(row: AuditRow) -> str:
    """A record in one line: number, time, type, and what it is about."""
    try:
        plain: dict[str, Any] = json.loads(row.line)
        details = plain["details"]
        when = datetime.fromtimestamp(float(plain["at"]), UTC).strftime("%Y-%m-%d %H:%M:%S")
        words = [
            f"{details[key]}" if key == "tool" else f"{key}={_value(details[key])}"
            for key in (
                "tool",
                "action_type",
                "decision",
                "tier",
                "rule",
                "flags",
                "answer",
                "reason",
                "level",
                "through",
                "records",
                "before",
            )
            if details.get(key) not in (None, "", [])
        ]
        about = [details[key] for key in ("thread", "person", "action") if key in details]
        more = [f"record={details['record']} {details.get('problem', '')}"] if "record" in details else []
        parts = [str(plain["type"]), *words, *map(str, about), *more]
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, OSError, RecursionError):
        return f"{row.n}  damaged; `parlour audit verify` names what is wrong"
    return visible(f"{row.n}  {when}  {'  '.join(parts)}")


def _value(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
