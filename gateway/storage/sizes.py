"""The sizes of a store, as it reports them."""

from __future__ import annotations

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCounts:
    """Sizes for `parlour doctor` and the metrics."""

    inbox_open: int
    inbox_done: int
    outbox_open: int
    records: int
