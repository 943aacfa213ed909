"""The files that a turn will send with its answer."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.domain.files import StoredFile


class TurnFiles:
    """The files that tools have returned in a turn so far, each once, in this order. Shared with
    sub-agents."""

    def __init__(self) -> None:
        self._files: dict[str, StoredFile] = {}

    def __len__(self) -> int:
        return len(self._files)

    def note(self, files: Iterable[StoredFile]) -> None:
        """Add files; known ones stay where they are."""
        for file in files:
            self._files.setdefault(file.id, file)

    def number_of(self, file_id: str) -> int:
        """The file's number, from 1; 0 if it is not among them."""
        return list(self._files).index(file_id) + 1 if file_id in self._files else 0

    def since(self, number: int) -> tuple[StoredFile, ...]:
        """The files after the first `number` ones."""
        return tuple(self._files.values())[number:]

    @property
    def names(self) -> frozenset[str]:
        """The names of the files."""
        return frozenset(file.name for file in self._files.values())
