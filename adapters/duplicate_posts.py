"""The port of posting channels that can find an unconfirmed post afterwards, by edits.

Some platforms cannot tell whether a post arrived, but let a bot edit messages whose ids it only guesses. Once
a later message exists, there are few ids below it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from adapters.channel import Part, Receipt
from pipeline.domain.ids import ThreadKey


@runtime_checkable
class RetractingChannel(Protocol):
    """A channel that can delete its posts. One attempt per call; `classify` takes any exception."""

    async def take_back(self, thread: ThreadKey, native_id: str) -> None:
        """Delete one of the bot's messages; a missing one is no error."""
        ...


@runtime_checkable
class AdoptingChannel(RetractingChannel, Protocol):
    """Implemented where `capabilities.adopts`. One attempt per call; `classify` takes any exception."""

    async def adopt(
        self, thread: ThreadKey, part: Part, *, repeat: str, labels: Iterable[str], known: Iterable[str]
    ) -> Receipt | None:
        """Find the message that an earlier post of `part` made, and make it show `part`; None for none.

        The search covers the ids below the message `repeat`, which shows the part again, and above the newest
        of the recorded messages `known`; `labels` are messages about the repeat. Raises InvalidInput where
        the search is impossible, and the errors of the calls."""
        ...
