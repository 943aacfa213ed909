"""Put reactions on people's messages: to acknowledge them, or to show activity in a direct chat.

Slack has status lines only in threads: `AtWork` replaces them in direct chats. Its reaction is removed when
the answer arrives. A reaction left by a crashed process is removed with the answer to its message.
"""

from __future__ import annotations

import logging

from adapters.slack.calls import Calls
from adapters.slack.failures import CallFailed
from adapters.slack.fields import read_handle
from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Inbound, InboundMessage

_log = logging.getLogger(__name__)

EMOJI = "eyes"
_KEEP = 1000
_CALL_S = 2.0
"""Seconds. Recording the answer waits for the removal."""
_PASSING = ("transient", "rate_limit", "auth")


async def set_reaction(calls: Calls, chat: str, reply_handle: str, *, on: bool) -> None:
    """Put the reaction on the message of a reply handle, or remove it. Repeating it is no error. Raises
    CallFailed."""
    handle = read_handle(reply_handle)
    if handle is None:
        return
    try:
        if on:
            await calls.run(
                "reactions.add",
                lambda client: client.reactions_add(channel=chat, timestamp=handle[0], name=EMOJI),
            )
        else:
            await calls.run(
                "reactions.remove",
                lambda client: client.reactions_remove(channel=chat, timestamp=handle[0], name=EMOJI),
            )
    except CallFailed as error:
        if error.code not in ("already_reacted", "no_reaction", "message_not_found"):
            raise


class AtWork:
    """The reactions of one bot."""

    def __init__(self, calls: Calls, clock: Clock) -> None:
        self._calls = calls
        self._clock = clock
        self._newest: dict[ThreadKey, str] = {}
        """By direct chat, the timestamp of the newest message received."""
        self._shown: dict[ThreadKey, set[str]] = {}
        """By direct chat, the timestamps of messages that may carry the reaction."""
        self._refused = False

    def received(self, item: Inbound) -> None:
        """Remember the message that a reaction would be added to."""
        if isinstance(item, InboundMessage) and item.private and item.thread.topic is None:
            handle = read_handle(item.reply_handle)
            if handle is not None:
                self._newest.pop(item.thread, None)
                _bounded(self._newest)
                self._newest[item.thread] = handle[0]

    def answered(self, thread: ThreadKey, reply_handle: str) -> None:
        """Mark a message whose answer is being sent. If another process received it, it may have a reaction
        that this process does not know of."""
        handle = read_handle(reply_handle)
        if thread.topic is None and thread not in self._newest and handle is not None:
            self._note(thread, handle[0])

    async def show(self, thread: ThreadKey) -> None:
        """React to the newest message of a direct chat, if any was received."""
        ts = self._newest.get(thread)
        if ts is None or self._refused or ts in self._shown.get(thread, ()):
            return
        self._note(thread, ts)
        try:
            await self._calls.run(
                "reactions.add",
                lambda client: client.reactions_add(channel=thread.chat, timestamp=ts, name=EMOJI),
            )
        except CallFailed as error:
            if error.code == "already_reacted" or error.failure.maybe_delivered:
                return
            self._forget(thread, ts)
            if error.code in ("missing_scope", "unknown_method", "no_permission"):
                self._refused = True
                _log.info("no sign of work in direct chats", extra={"reason": str(error)})

    async def end(self, thread: ThreadKey) -> None:
        """Remove the chat's reactions; failed removals are retried with the next answer."""
        for ts in tuple(self._shown.get(thread, ())):
            if not self._refused and not await self._removed(thread, ts):
                return
            self._forget(thread, ts)

    async def _removed(self, thread: ThreadKey, ts: str) -> bool:
        """Whether the message has no reaction any more."""
        try:
            async with self._clock.timeout(_CALL_S):
                await self._calls.run(
                    "reactions.remove",
                    lambda client: client.reactions_remove(channel=thread.chat, timestamp=ts, name=EMOJI),
                )
        except TimeoutError:
            return False
        except CallFailed as error:
            # no_reaction and message_not_found among others: it is gone.
            return error.failure.kind not in _PASSING
        return True

    def _note(self, thread: ThreadKey, ts: str) -> None:
        if thread not in self._shown:
            _bounded(self._shown)
        self._shown.setdefault(thread, set()).add(ts)

    def _forget(self, thread: ThreadKey, ts: str) -> None:
        stamps = self._shown.get(thread, set())
        stamps.discard(ts)
        if not stamps:
            self._shown.pop(thread, None)


def _bounded(known: dict[ThreadKey, str] | dict[ThreadKey, set[str]]) -> None:
    """Drop the oldest entry if the limit is reached."""
    if len(known) >= _KEEP:
        del known[next(iter(known))]
