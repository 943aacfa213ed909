"""What a posting channel offers where a lost confirmation can be cleared up afterwards, by edits.

Some platforms cannot tell whether a post arrived, and let a bot edit messages whose ids it only guesses. Once
a later message is there, the ids below it are few.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from adapters.channel import Part, Receipt
from pipeline.domain.ids import ThreadKey


@runtime_checkable
class AdoptingChannel(Protocol):
    """Counts where `capabilities.adopts`. One attempt per call; any exception is given to `classify`."""

    async def adopt(
        self, thread: ThreadKey, part: Part, *, repeat: str, labels: Iterable[str], known: Iterable[str]
    ) -> Receipt | None:
        """The message that an earlier post of `part` made, which shows it afterwards; None for none.

        It is looked for below the message `repeat`, which shows the part again, and above the newest of the
        messages `known` to be on record; `labels` are messages about the repeat. Raises InvalidInput where
        nobody can tell, and what the calls raise."""
        ...

    async def take_back(self, thread: ThreadKey, native_id: str) -> None:
        """Delete a message of ours; one that is gone already is no error."""
        ...
