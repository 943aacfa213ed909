"""What a tool may read that its arguments do not name, and what it has read."""

from __future__ import annotations

from collections.abc import Callable


class Reading:
    """The reading of one execution. Without `may_read` everything may be read."""

    def __init__(self, may_read: Callable[[str], bool] | None = None) -> None:
        self._may_read = may_read
        self.names: list[str] = []
        """What the result holds a part of: `own/a.txt`, `notes/a title`."""
        self.left_out = 0
        """How many may not be read."""

    def takes(self, name: str) -> bool:
        """Whether the file, note or host of that name may be read. One that may not is counted."""
        may = self._may_read is None or self._may_read(name)
        self.left_out += not may
        return may

    def note(self, name: str) -> None:
        """Note that the result holds a part of it."""
        self.names.append(name)
