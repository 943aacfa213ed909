"""Limit how often a refusal is posted in a chat, so that refusals do not flood it."""

from __future__ import annotations

from typing import Protocol

from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Inbound

AGAIN_S = 3600.0
_MAX_REMEMBERED = 10_000

_Key = tuple[str, str, str, str, str]


class Say(Protocol):
    """Posts a line in a chat, best effort: without waiting and without retries."""

    def __call__(self, thread: ThreadKey, words: str, *, private: bool) -> None: ...


class Refusals:
    """Posts refusals, each line at most once per person, chat and period. Remembers a bounded number.

    Not a `SlidingWindow`: each call states its own period.
    """

    def __init__(self, say: Say, clock: Clock) -> None:
        self._say = say
        self._clock = clock
        self._sent = BoundedDict[_Key, float](_MAX_REMEMBERED)

    def post(self, item: Inbound, words: str, *, again_after_s: float = AGAIN_S, about: str = "") -> None:
        """Post `words` where `item` came from, unless they were posted there for its author in the last
        `again_after_s` seconds. `about` identifies a line whose words vary."""
        thread, now = item.thread, self._clock.monotonic()
        key = (thread.channel, thread.account, thread.chat, item.author.id, about or words)
        said = self._sent.get(key)
        if said is not None and now - said < again_after_s:
            return
        self._sent[key] = now
        self._say(thread, words, private=item.private)
