"""Saved workflow documents and their runs in dictionaries."""

from __future__ import annotations

from collections.abc import Callable

from gateway.storage.json_bodies import storable_text
from gateway.storage.saved_workflows import SavedRun, SavedSummary


class MemorySavedWorkflows:
    """A part of `MemoryStore`. `require_open` raises StorageError if the store is closed."""

    def __init__(self, require_open: Callable[[], None]) -> None:
        self._require_open = require_open
        self._saved: dict[str, list[tuple[SavedSummary, str]]] = {}
        """By name, the first version first."""
        self._runs: dict[str, SavedRun] = {}

    def drop_of(self, thread: str) -> None:
        """Forget the run of a conversation that is erased."""
        self._runs.pop(thread, None)

    async def save(self, name: str, text: str, *, base: int, runs: bool, at: float) -> int | None:
        self._require_open()
        known = self._saved.get(name, [])
        if base != len(known):
            return None
        summary = SavedSummary(name=name, version=base + 1, runs=runs, saved_at=at)
        self._saved[name] = [*known, (summary, storable_text(text))]
        return summary.version

    async def newest(self) -> tuple[SavedSummary, ...]:
        self._require_open()
        return tuple(versions[-1][0] for _, versions in sorted(self._saved.items()))

    async def versions(self, name: str) -> tuple[SavedSummary, ...]:
        self._require_open()
        return tuple(summary for summary, _ in reversed(self._saved.get(name, [])))

    async def text(self, name: str, version: int) -> str | None:
        self._require_open()
        known = self._saved.get(name, [])
        return known[version - 1][1] if 1 <= version <= len(known) else None

    async def delete(self, name: str, *, base: int) -> bool:
        self._require_open()
        if not base or len(self._saved.get(name, [])) != base:
            return False
        del self._saved[name]
        self._runs = {thread: run for thread, run in self._runs.items() if run.name != name}
        return True

    async def note_run(self, run: SavedRun) -> None:
        self._require_open()
        self._runs.setdefault(run.thread, run)

    async def run_in(self, thread: str) -> SavedRun | None:
        self._require_open()
        return self._runs.get(thread)

    async def runs_of(self, name: str, *, threads: str, limit: int) -> tuple[SavedRun, ...]:
        self._require_open()
        found = [run for run in self._runs.values() if run.name == name and run.thread.startswith(threads)]
        return tuple(sorted(found, key=lambda run: (-run.at, run.thread))[:limit])
