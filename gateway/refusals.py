"""How often a chat is told that somebody may not speak, or must wait: a refusal must not become a flood."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Inbound

Say = Callable[[ThreadKey, str], None]
"""Posts a line in a chat, at best: nothing waits for it, and nothing is tried again."""

_AGAIN_S = 3600.0
_MAX_REMEMBERED = 10_000

_Key = tuple[str, str, str, str, str]


class Refusals:
    """Says each line to a person in a chat at most once an hour. Remembers a bounded number of them."""

    def __init__(self, say: Say, clock: Clock) -> None:
        self._say = say
        self._clock = clock
        self._said: OrderedDict[_Key, float] = OrderedDict()

    def tell(self, item: Inbound, words: str) -> None:
        """Post `words` where `item` came from, unless its author has just read them there."""
        thread, now = item.thread, self._clock.monotonic()
        key = (thread.channel, thread.account, thread.chat, item.author.id, words)
        said = self._said.get(key)
        if said is not None and now - said < _AGAIN_S:
            return
        self._said[key] = now
        self._said.move_to_end(key)
        if len(self._said) > _MAX_REMEMBERED:
            self._said.popitem(last=False)
        self._say(thread, words)
