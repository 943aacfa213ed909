"""Show with a reaction that a message is taken, and remove it when the answer is there.

Both are previews of the chat's queue: they are sent when nothing else waits and the rate limiter has a call
to spare, so a reply never waits for one. Nothing is stored for them. After a crash before the answer the
reaction is set again, which shows it once. At the start it is removed from the messages that were answered
just before the earlier process ended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from adapters.acknowledging import acknowledges, may_leave_reactions
from adapters.channel import Channel
from gateway.channels.registry import ChannelRegistry
from gateway.delivery.chat_queue import ChatQueue, ChatQueues
from gateway.delivery.platform_calls import classify_failure
from gateway.storage.finished import FinishedBook
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import InboundMessage

_log = logging.getLogger(__name__)

_MOST = 2_000
_AFTER_S = 0.3
"""A message that is answered sooner needs no reaction."""
_SETTLE_S = 0.3
"""The reply is posted first."""
_ATTEMPTS = 3
_AGAIN_S = 2.0
_PASSING = ("transient", "rate_limit")
_LEFT_ATTEMPTS = 8
"""After a start a channel may need a minute to connect."""
_LEFT_S = 60.0
"""Of the messages answered in the last seconds before a crash, some may still have a reaction."""


@dataclass(slots=True, kw_only=True)
class _Taken:
    thread: ThreadKey
    reply_handle: str
    private: bool
    tried: bool
    """The platform may show the reaction."""
    attempts: int = _ATTEMPTS


class Acknowledgements:
    """The reactions on the messages of all channels that show them."""

    def __init__(self, *, channels: ChannelRegistry, queues: ChatQueues, clock: Clock) -> None:
        self._channels = channels
        self._queues = queues
        self._clock = clock
        self._taken = BoundedDict[str, _Taken](_MOST)

    def reporter(self, channels: Iterable[Channel]) -> Callable[[InboundMessage], None] | None:
        """What calls `taken` for a message; None if none of `channels` shows reactions."""
        if not any(map(acknowledges, channels)):
            return None
        return lambda message: self.taken(
            message.thread,
            message.message_id,
            reply_handle=message.reply_handle,
            private=message.private,
            is_new=True,
        )

    def taken(
        self, thread: ThreadKey, message_id: str, *, reply_handle: str, private: bool, is_new: bool = False
    ) -> None:
        """A message is accepted, or its turn starts. Returns at once. A message that is not `is_new` when it
        is first mentioned may have the reaction of an earlier process."""
        if not reply_handle or message_id in self._taken or not acknowledges(self._channels.of(thread)):
            return
        one = self._taken[message_id] = _Taken(
            thread=thread, reply_handle=reply_handle, private=private, tried=not is_new
        )
        self._schedule(message_id, one, on=True, after_s=_AFTER_S)

    async def remove_left(self, finished: FinishedBook) -> None:
        """Remove the reactions of messages that an earlier process has answered just before it ended. Raises
        nothing for a store that fails."""
        if not any(map(may_leave_reactions, self._channels)):
            return
        try:
            messages = await finished.newest(within_s=_LEFT_S)
        except StorageError as error:
            _log.info("reactions may be left on messages", extra={"reason": str(error)})
            return
        for message in messages:
            if message.reply_handle and may_leave_reactions(self._channels.of(message.thread)):
                one = _Taken(
                    thread=message.thread,
                    reply_handle=message.reply_handle,
                    private=message.private,
                    tried=True,
                    attempts=_LEFT_ATTEMPTS,
                )
                self._schedule(message.message_id, one, on=False, after_s=_SETTLE_S)

    def ended(self, message_id: str) -> None:
        """The message is answered, or will not be. Returns at once."""
        one = self._taken.pop(message_id, None)
        if one is None:
            return
        queue = self._queue(one)
        if queue is not None:
            queue.cancel_preview(_key(message_id))
        if one.tried:
            self._schedule(message_id, one, on=False, after_s=_SETTLE_S)

    def _schedule(self, message_id: str, one: _Taken, *, on: bool, after_s: float, attempt: int = 1) -> None:
        queue = self._queue(one)
        if queue is not None:
            due = self._clock.monotonic() + after_s
            queue.schedule_preview(
                _key(message_id), lambda: self._set(message_id, one, on=on, attempt=attempt), not_before=due
            )

    async def _set(self, message_id: str, one: _Taken, *, on: bool, attempt: int) -> None:
        """Make the call; runs in the chat's queue."""
        channel, queue = self._channels.of(one.thread), self._queue(one)
        reacting: object = channel
        if channel is None or queue is None or not may_leave_reactions(reacting):
            return
        one.tried = True
        try:
            await queue.droppable(reacting.acknowledge(one.thread, one.reply_handle, on=on))
        except Exception as error:  # noqa: BLE001 - a missing reaction does no harm
            # The chat's rate limiter does not learn of it: a limit of reactions must not delay a reply.
            failure = classify_failure(channel, error)
            _log.debug("a reaction was not set", extra={"reason": failure.message})
            if failure.kind in _PASSING and attempt < one.attempts:
                again_s = failure.retry_after_s or _AGAIN_S * attempt
                self._schedule(message_id, one, on=on, after_s=again_s, attempt=attempt + 1)

    def _queue(self, one: _Taken) -> ChatQueue | None:
        channel = self._channels.of(one.thread)
        return None if channel is None else self._queues.queue_for(channel, one.thread, private=one.private)


def _key(message_id: str) -> str:
    return f"taken {message_id}"
