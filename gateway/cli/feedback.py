"""`parlour feedback`: list people's thumbs on answers, also beside a running gateway."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import asdict
from datetime import UTC, datetime

from adapters.formatting.visible import visible
from gateway.cli.graph import write_out
from gateway.cli.stored_books import StorePlace, stored_books
from gateway.storage.feedback import Feedback
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.errors import ConfigurationError

_SHOWN = 1_000
_AGO = re.compile(r"([0-9]{1,6})(min|h|d|w)")
_UNITS = {"min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SIGNS = {"up": "\N{THUMBS UP SIGN}", "down": "\N{THUMBS DOWN SIGN}"}


def list_feedback(place: StorePlace, since: str | None, *, as_json: bool, clock: Clock | None = None) -> int:
    """Print the newest feedback since a time, as `since_time` reads it; a JSON object for each line with
    `as_json`. Exit code 0. Raises ConfigurationError and StorageError."""
    after = 0.0 if since is None else since_time(since, (clock or SystemClock()).now())
    given = asyncio.run(_read(place, after))
    if as_json:
        for one in given:
            write_out(json.dumps(asdict(one), ensure_ascii=False) + "\n")
        return 0
    if not given:
        write_out("no feedback\n")
        return 0
    ups = sum(one.value == "up" for one in given)
    write_out(f"feedback: {ups} up, {len(given) - ups} down\n")
    for one in given:
        write_out(f"  {_line(one)}\n")
    if len(given) == _SHOWN:
        write_out(f"only the newest {_SHOWN} are shown; `--since` limits the time\n")
    return 0


def since_time(text: str, now: float) -> float:
    """The Unix time of `7d`, `12h`, `30min` or `2w` before `now`, or of a date such as 2026-11-24 in UTC.
    Raises ConfigurationError."""
    if ago := _AGO.fullmatch(text):
        return now - int(ago[1]) * _UNITS[ago[2]]
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise ConfigurationError(
            f"--since: {text!a} is no time; write for example 7d, 12h or 2026-11-24"
        ) from None


async def _read(place: StorePlace, since: float) -> tuple[Feedback, ...]:
    async with stored_books(place) as books:
        return await books.feedback.listed(since=since, limit=_SHOWN)


def _line(one: Feedback) -> str:
    when = datetime.fromtimestamp(one.at, UTC).strftime("%Y-%m-%d %H:%M")
    who = visible(one.name or one.user)
    agent = f"  agent {visible(one.agent)}" if one.agent else ""
    place = f"{visible(one.channel)} ({visible(one.account)})"
    return f"{when}  {_SIGNS[one.value]}  {who} on {place}{agent}  run {one.run_id or 'unknown'}"
