"""A run log that redacts error messages, as providers and libraries quote addresses and keys in them, and
leaves out keys of the state that are not to be recorded.

It does not redact the rest of the run's state: the nodes are responsible for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.graph.definition.ports import RunLog
from pipeline.redaction.redactor import Redactor


class SafeRunLog:
    """A `RunLog` that redacts and forwards to another one."""

    def __init__(self, log: RunLog, redactor: Redactor, unrecorded: frozenset[str] = frozenset()) -> None:
        self._log = log
        self._redactor = redactor
        self._unrecorded = unrecorded
        self._unchanged = True

    @property
    def commits_pauses(self) -> bool:
        """See `RunRecorder.is_committed_later`."""
        return bool(getattr(self._log, "commits_pauses", False))

    @property
    def verbatim(self) -> bool:
        """Whether the log holds every record as it was made."""
        return self._unchanged and bool(getattr(self._log, "verbatim", False))

    def append(self, record: Mapping[str, Any]) -> None:
        self._log.append(self._safe(record) if self._unrecorded or "error" in record else record)

    async def barrier(self) -> None:
        await self._log.barrier()

    async def finish(self, records: Sequence[Mapping[str, Any]]) -> None:
        await self._log.finish([self._safe(record) for record in records])

    def _safe(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        update = record.get("update")
        if self._unrecorded and update and not self._unrecorded.isdisjoint(update):
            kept = {key: value for key, value in update.items() if key not in self._unrecorded}
            record = {**record, "update": kept}
            self._unchanged = False
        error = record.get("error")
        if error is None or not isinstance(error, Mapping) or not isinstance(error.get("message"), str):
            return record
        self._unchanged = False
        return {**record, "error": {**error, "message": self._redactor.text(error["message"])}}
