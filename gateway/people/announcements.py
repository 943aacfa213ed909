"""Send a line to another chat than the one where something happened, once."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from gateway.storage.codec import new_entry
from gateway.storage.identities import Member
from gateway.storage.ports import Store
from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Announcement, Author

_log = logging.getLogger(__name__)


class Announcer:
    """Enqueues announcements. A turn sends each, like every other reply; this module knows no channel."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        wake: Callable[[str], None],
        still_allowed: Callable[[Announcement], Awaitable[bool]],
    ) -> None:
        """`wake` is called with a thread that has work, `still_allowed` says whether the bot may write to the
        person there."""
        self._store = store
        self._clock = clock
        self._wake = wake
        self._still_allowed = still_allowed

    async def announce(self, member: Member, text: str, *, cause: str) -> None:
        """Send `text` to the private chat of `member`, once for the message id `cause`.

        Raises StorageError.
        """
        identity = f"{cause}_{hashlib.sha256(member.identity.key.encode()).hexdigest()[:12]}"
        item = Announcement(
            message_id=identity,
            native_id=identity,
            thread=ThreadKey.decode(member.thread),
            author=Author(id=member.identity.user),
            received_at=self._clock.now(),
            text=text,
        )
        if not await self._still_allowed(item):
            _log.info(
                "an announcement is dropped: its reader was shut out", extra={"thread_key": member.thread}
            )
            return
        await self._store.accept(replace(new_entry(item), dedupe_key=f"announcement:{identity}"))
        self._wake(member.thread)
