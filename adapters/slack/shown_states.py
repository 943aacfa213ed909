"""Track the content of the bot's messages after their last edit, and serialise the edits of each message.

Two parts of the gateway edit a question's message: the turn that asked, and a press that removes the
buttons. A press contains the message as it was when it was pressed; later edits take precedence.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

KEPT = 500
"""Messages whose last edit is remembered; one body is 20 kB at most."""
Body = Mapping[str, Any]


class MessageState:
    """The state of one message of the bot."""

    def __init__(self) -> None:
        self.body: Body | None = None
        """The content after the last edit; None where this process has not edited it."""
        self._lock = asyncio.Lock()
        self._users = 0

    @property
    def in_use(self) -> bool:
        """Whether an edit runs or waits."""
        return self._users > 0

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Run one edit: after those that were begun before it, and before all later ones."""
        self._users += 1
        try:
            async with self._lock:
                yield
        finally:
            self._users -= 1


class MessageStates:
    """The most recently edited messages, by channel and timestamp."""

    def __init__(self) -> None:
        self._states: OrderedDict[tuple[str, str], MessageState] = OrderedDict()

    @asynccontextmanager
    async def editing(self, chat: str, ts: str) -> AsyncIterator[MessageState]:
        """The message's state for one edit; edits run in the order in which they were begun."""
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
