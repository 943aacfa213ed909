"""Read the fields that only Slack has: ids, timestamps and handles. What does not fit counts as absent."""

from __future__ import annotations

import re

from adapters.json_fields import amount

_IDENT = re.compile(r"[A-Z][A-Z0-9]{1,30}")
_STAMP = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}")
_TRIGGER = re.compile(r"[0-9A-Za-z.]{1,120}")
_HANDLE = re.compile(r"([0-9]{1,12}\.[0-9]{1,9})/([UW][A-Z0-9]{1,30})/([TE][A-Z0-9]{1,30})")


def ident(value: object) -> str:
    """One of Slack's ids (C…, D…, U…, T…), or empty."""
    return value if isinstance(value, str) and _IDENT.fullmatch(value) else ""


def stamp(value: object) -> str:
    """A message's timestamp, which is its id within a conversation, or empty."""
    return value if isinstance(value, str) and _STAMP.fullmatch(value) else ""


def trigger(value: object) -> str:
    """The id of a press or a command, or empty."""
    return value if isinstance(value, str) and _TRIGGER.fullmatch(value) else ""


def count(value: object) -> int | None:
    """A non-negative integer of plausible size, or None."""
    number = amount(value)
    return None if number is None else int(number)


def reply_handle(ts: str, user: str, team: str) -> str:
    """The handle with which a stream can answer a message; empty where a part is missing."""
    handle = f"{ts}/{user}/{team}"
    return handle if _HANDLE.fullmatch(handle) else ""


def read_handle(handle: str) -> tuple[str, str, str] | None:
    """(ts, user, team) of a `reply_handle`, or None for any other text."""
    found = _HANDLE.fullmatch(handle)
    return (found[1], found[2], found[3]) if found else None
