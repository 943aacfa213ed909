"""Port for the messages that were finished last. A part of `Store`."""

from __future__ import annotations

from typing import Final, Protocol

from pipeline.domain.messages import InboundMessage

LOOKED_THROUGH: Final = 200
"""The newest entries among which finished messages are searched."""


class FinishedBook(Protocol):
    """The newest finished messages of all threads."""

    async def newest(self, *, within_s: float) -> tuple[InboundMessage, ...]:
        """Those that were finished in the `within_s` seconds before the last one was, newest first, and that
        got a reply. Messages without their words, as off the record, are left out. Raises StorageError."""
        ...
