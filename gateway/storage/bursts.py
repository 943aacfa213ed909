"""Entries that the commit of an earlier entry's turn finishes too: a part of `TurnCommit`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedToo:
    """An entry that the commit of an earlier entry's turn finishes."""

    seq: int
    body: Mapping[str, Any] | None = None
    """Replaces the entry's body if that must be forgotten; None keeps it."""
