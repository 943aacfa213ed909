"""A run log in memory, for tests: it returns the same records as a store.

Each record is kept as JSON text from `append` on. It can fail at a chosen call, be truncated as by a crash,
and be damaged. It does not model the speed or durability of a real store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pipeline.graph.run.records import RawRecord


class LogBroken(Exception):
    """A scripted failure of the log."""


class MemoryRunLog:
    """A RunLog. `fail_append` and `fail_barrier` number the one call that fails, from 1; 0 is none."""

    def __init__(self, texts: Sequence[str] = (), *, fail_append: int = 0, fail_barrier: int = 0) -> None:
        self.texts = list(texts)
        self.durable = len(self.texts)
        """The number of records that were covered by a barrier or the end."""
        self._fail_append = fail_append
        self._fail_barrier = fail_barrier
        self._appends = 0
        self._barriers = 0

    @property
    def records(self) -> list[RawRecord]:
        """The records as read back; None for a text that is not JSON."""
        return [_read(text) for text in self.texts]

    def append(self, record: Mapping[str, Any]) -> None:
        self._appends += 1
        if self._appends == self._fail_append:
            raise LogBroken(f"append {self._appends} was configured to fail")
        self.texts.append(json.dumps(record, default=_plain, allow_nan=False))

    async def barrier(self) -> None:
        self._barriers += 1
        if self._barriers == self._fail_barrier:
            raise LogBroken(f"barrier {self._barriers} was configured to fail")
        self.durable = len(self.texts)

    async def finish(self, records: Sequence[Mapping[str, Any]]) -> None:
        for record in records:
            self.append(record)
        await self.barrier()

    def cut(self, length: int) -> MemoryRunLog:
        """A log with the first `length` records, as after a crash."""
        return MemoryRunLog(self.texts[:length])

    def damaged(self, at: int, text: str) -> MemoryRunLog:
        """A log with another text in the place of one record."""
        return MemoryRunLog([*self.texts[:at], text, *self.texts[at + 1 :]])


def _read(text: str) -> RawRecord:
    try:
        record: RawRecord = json.loads(text)
    except ValueError:
        return None
    return record


def _plain(value: object) -> object:
    if isinstance(value, MappingProxyType):
        return dict(value)
    raise TypeError(f"a record holds {type(value).__name__}, which is not JSON")
