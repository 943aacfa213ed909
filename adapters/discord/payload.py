"""Read Discord's ids, which contain the time of their creation."""

from __future__ import annotations

import re
from typing import Any

_SNOWFLAKE = re.compile(r"[0-9]{1,20}")
_LEADING_SNOWFLAKE = re.compile(r"[0-9]{1,20}(?=:|$)")
_EPOCH_MS = 1_420_070_400_000
_TIME_SHIFT = 22


def snowflake(value: Any) -> str:
    """The id, or "" for anything else."""
    return value if isinstance(value, str) and _SNOWFLAKE.fullmatch(value) else ""


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
