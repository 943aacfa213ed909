"""Read fields of untrusted payloads: bounded values of the expected type, or empty ones."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

_IDENT = re.compile(r"[A-Z][A-Z0-9]{1,30}")
_STAMP = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}")
_TRIGGER = re.compile(r"[0-9A-Za-z.]{1,120}")
_HANDLE = re.compile(r"([0-9]{1,12}\.[0-9]{1,9})/([UW][A-Z0-9]{1,30})/([TE][A-Z0-9]{1,30})")
_MOST_ITEMS = 20


def table(value: object) -> Mapping[str, Any]:
    """`value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def tables(value: object) -> tuple[Mapping[str, Any], ...]:
    """The objects in a JSON array, the first 20 at most."""
    if not isinstance(value, list):
        return ()
    return tuple(one for one in value[:_MOST_ITEMS] if isinstance(one, dict))


def words(value: object, limit: int) -> str:
    """A string, cut to `limit` characters, with invalid Unicode replaced."""
    if not isinstance(value, str):
        return ""
    return value[:limit].encode("utf-8", "replace").decode("utf-8")


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
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value) if 0 <= value < 2**53 else None


def reply_handle(ts: str, user: str, team: str) -> str:
    """The handle with which a stream can answer a message; empty where a part is missing."""
    handle = f"{ts}/{user}/{team}"
    return handle if _HANDLE.fullmatch(handle) else ""


def read_handle(handle: str) -> tuple[str, str, str] | None:
    """(ts, user, team) of a `reply_handle`, or None for any other text."""
    found = _HANDLE.fullmatch(handle)
    return (found[1], found[2], found[3]) if found else None
