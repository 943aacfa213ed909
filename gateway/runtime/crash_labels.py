"""Crash labels: named places where a test can kill the process as a power failure would.

`PARLOUR_CRASH_AT=turn-commit-before:2` kills the process at the second pass. Without the setting
a call does nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Literal, get_args

Label = Literal[
    "inbox-commit-before",
    "inbox-commit-after",
    "crisis-notice-queued",
    "watch-fired-before",
    "watch-fired-after",
    "heartbeat-commit-before",
    "heartbeat-commit-after",
    "heartbeat-news-queued",
    "heartbeat-cancelled",
    "effect-begun-before",
    "effect-begun-after",
    "effect-done-before",
    "effect-done-after",
    "audit-decided-before",
    "audit-decided-after",
    "audit-done-before",
    "audit-done-after",
    "change-begun",
    "undo-begun",
    "undo-written",
    "join-before",
    "join-after",
    "turn-commit-before",
    "turn-commit-after",
    "place-before",
    "place-after",
    "send-before",
    "send-after",
    "receipt-before",
    "receipt-after",
    "voice-before",
    "voice-after",
    "redeem-before",
    "redeem-after",
    "deletion-begun",
    "erase-before",
    "erase-after",
    "memory-before",
    "memory-after",
    "session-end-before",
    "session-end-after",
    "session-memory-before",
    "session-memory-after",
    "person-chats-erased",
    "person-room-redacted",
    "person-forgotten",
    "person-compacted",
]
LABELS: tuple[Label, ...] = get_args(Label)
_KILLED = 137
_NOWHERE: dict[Label, None] = {}


class CrashLabels:
    """Kills the process at the n-th pass of one label; disarmed by default."""

    def __init__(self, crash_at: str | None = None) -> None:
        label, _, count = (crash_at or "").partition(":")
        self._label = label
        self._passes_left = int(count or 1)
        self.reach: Callable[[Label], object] = self._reach if crash_at else _NOWHERE.get
        """Pass the place called `label`, or kill the process there. Disarmed it runs no bytecode: each turn
        passes eight places."""

    def _reach(self, label: Label) -> None:
        if label != self._label:
            return
        self._passes_left -= 1
        if self._passes_left <= 0:
            # No exit handlers, no flushing: tests need the state that kill -9 leaves.
            os._exit(_KILLED)
