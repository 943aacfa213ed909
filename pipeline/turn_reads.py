"""Read what a run may need beside its message when a node first needs it: history, room, workspace texts.

A graph can so put a check before any of it: a run whose nodes need none of it causes no read. Not here: the
state that a graph keeps, which is a part of its input.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar, TypeVar

from pipeline.domain.clock import Clock
from pipeline.domain.conversation import Conversation, Summary
from pipeline.domain.errors import StorageError, TurnFailed
from pipeline.domain.messages import ApprovalReply, InboundMessage
from pipeline.domain.rooms import RoomTalk
from pipeline.graph.definition.decisions import State
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.history.attached_files import with_newest_pictures
from pipeline.history.view import HISTORY, summarised
from pipeline.intake.forwarded_content import hosts_named, note_foreign_history
from pipeline.intake.node import HISTORY_COUNTED
from pipeline.runtime.ports import Rooms, TurnSession, Workspace, WorkspaceTexts
from pipeline.runtime.scope import TurnScope

_log = logging.getLogger(__name__)

_RETRY = RetryPolicy(delay_s=0.2)
"""Of a failed read. A node of the agent's loop has no retries, since these would call the model again."""
_ROOM = "what others wrote in the room"
_NO_TALK = RoomTalk()
_NO_HISTORY = "I could not read what we said before. Please send the message again."
_NO_TEXTS = "I could not read the texts that I work with. Please send the message again."
_SHOWS_READING = ("agent", "tasks", HISTORY)
"""Keys that only nodes with the history write, or those after them."""

_T = TypeVar("_T")


class ReadFailed(TurnFailed):
    """A node needs what cannot be read. It has been tried again, so the node is not."""

    permanent: ClassVar[bool] = True


class TurnReads:
    """The `History` and the `Workspace` of one turn. Each is read at most once; a failed read is tried again
    at the next use."""

    def __init__(
        self,
        *,
        session: TurnSession,
        rooms: Rooms,
        workspace: Workspace,
        message: InboundMessage | ApprovalReply,
        scope: TurnScope,
        clock: Clock,
        pictures: int | None = None,
    ) -> None:
        """`pictures` is the most of the conversation's pictures that the model is shown; None for a model
        that sees none."""
        self._clock = clock
        self._session = session
        self._rooms = rooms
        self._workspace = workspace
        self._message = message
        self.scope = scope
        self._pictures = pictures
        self._conversation: Conversation | None = None
        self._room: RoomTalk | None = _NO_TALK if message.private else None
        self._texts: WorkspaceTexts | None = None
        self._named: frozenset[str] | None = None
        self._reading = asyncio.Lock()
        """Held while a node reads; other branches of the run wait for it."""

    async def conversation(self) -> Conversation:
        """See `History.conversation`."""
        if self._conversation is None:
            async with self._reading:
                if self._conversation is None:
                    said = await self._tried(self._session.conversation)
                    said = with_newest_pictures(said, self._pictures)
                    note_foreign_history(self.scope, said)
                    self._conversation = said
        return self._conversation

    async def room(self) -> RoomTalk:
        """See `History.room`."""
        said = await self.conversation()
        if self._room is None:
            async with self._reading:
                if self._room is None:
                    talk = await self._tried(partial(self._rooms.talk, self._message, said))
                    self.scope.foreign.note(_ROOM if any(not line.own for line in talk.lines) else "")
                    self._room = talk
        return self._room

    async def _tried(self, read: Callable[[], Awaitable[_T]]) -> _T:
        """What `read` returns. It is tried again while the store fails."""
        attempt = 1
        while True:
            try:
                return await read()
            except Exception as error:
                if not isinstance(error, StorageError) or attempt == _RETRY.max_attempts:
                    raise _unreadable("history_unreadable", _NO_HISTORY, error) from error
            await self._clock.sleep(_RETRY.delay(attempt, 0.0))
            attempt += 1

    async def summarise(self, summary: Summary) -> bool:
        """See `History.summarise`."""
        durable = await self._session.record_summary(summary)
        if self._conversation is not None:
            self._conversation = summarised(self._conversation, summary)
        return durable

    def texts(self, scope: TurnScope) -> WorkspaceTexts:
        """See `Workspace.texts`; the same for the whole turn."""
        if self._texts is None:
            try:
                self._texts = self._workspace.texts(scope)
            except Exception as error:
                raise _unreadable("workspace_unreadable", _NO_TEXTS, error) from error
        return self._texts

    def named_hosts(self, text: str) -> frozenset[str]:
        """The hosts that the author has named in `text` and, once the history is read, in it: an answer may
        link to them. Computed on demand, as it searches all turns."""
        if self._conversation is None:
            return hosts_named(self.scope, Conversation(), text)
        if self._named is None:
            self._named = hosts_named(self.scope, self._conversation, text)
        return self._named


def has_used_history(state: State) -> bool:
    """Whether a node of the run of `state` may have used the history."""
    return HISTORY_COUNTED in state.get("intake", {}) or any(key in state for key in _SHOWS_READING)


def _unreadable(code: str, words: str, error: Exception) -> ReadFailed:
    _log.error("a turn cannot read what it needs", extra={"code": code}, exc_info=error)
    return ReadFailed(code, words, recoverable=True)
