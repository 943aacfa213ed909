"""What each message of ours shows, by the last edit of it, and one edit of a message at a time.

Two parts of the gateway edit the message of a question: the turn that asked, and the press that takes the
buttons away. A press carries the message as it was when somebody pressed; what was edited since counts more.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

KEPT = 500
"""Messages whose last edit is remembered; the body of one is 20 kB at most."""
Body = Mapping[str, Any]


class MessageState:
    """One message of ours."""

    def __init__(self) -> None:
        self.body: Body | None = None
        """What the last edit made it show; None where this process has not edited it."""
        self._lock = asyncio.Lock()
        self._users = 0

    @property
    def in_use(self) -> bool:
        """Whether an edit is under way or waits."""
        return self._users > 0

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Edits that were begun before this one have ended; those begun after it wait for its end."""
        self._users += 1
        try:
            async with self._lock:
                yield
        finally:
            self._users -= 1


class MessageStates:
    """The messages that were edited last, by channel and timestamp."""

    def __init__(self) -> None:
        self._states: OrderedDict[tuple[str, str], MessageState] = OrderedDict()

    @asynccontextmanager
    async def editing(self, chat: str, ts: str) -> AsyncIterator[MessageState]:
        """The message's state, for one edit, in the order in which edits are begun."""
        state = self._states.setdefault((chat, ts), MessageState())
        self._states.move_to_end((chat, ts))
        try:
            async with state.alone():
                yield state
        finally:
            self._forget()

    def _forget(self) -> None:
        for key in list(self._states)[: max(0, len(self._states) - KEPT)]:
            if not self._states[key].in_use:
                del self._states[key]
