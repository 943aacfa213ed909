"""Read single fields of Discord's JSONof any type. Nothing here raises."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_SNOWFLAKE = re.compile(r"[0-9]{1,20}")
_LEADING_SNOWFLAKE = re.compile(r"[0-9]{1,20}(?=:|$)")
_EPOCH_MS = 1_420_070_400_000
_TIME_SHIFT = 22


def mapping(value: Any) -> Mapping[str, Any]:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any, *, limit: int) -> list[Mapping[str, Any]]:
    """The objects of a list, `limit` of them at most."""
    if not isinstance(value, list):
        return []
    return [one for one in value[:limit] if isinstance(one, dict)]


def snowflake(value: Any) -> str:
    """The id, or "" for anything else."""
    return value if isinstance(value, str) and _SNOWFLAKE.fullmatch(value) else ""


def integer(value: Any) -> int:
    """The integer, or 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def text(value: Any, *, limit: int) -> str:
    """The text, cut at `limit` characters; half of a surrogate pair becomes U+FFFD."""
    if not isinstance(value, str):
        return ""
    return value[:limit].encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def snowflake_at(unix_s: float) -> int:
    """The smallest id of its millisecond; ids of a channel grow with time. 0 before Discord's epoch."""
    return max(0, int(unix_s * 1000) - _EPOCH_MS) << _TIME_SHIFT


def unix_of(message_id: str) -> float:
    """The creation time of the object with this id, in Unix seconds."""
    return ((int(message_id) >> _TIME_SHIFT) + _EPOCH_MS) / 1000


def leading_snowflake(native_id: str) -> int | None:
    """The platform's id with which a native id begins."""
    match = _LEADING_SNOWFLAKE.match(native_id)
    return int(match.group()) if match else None
