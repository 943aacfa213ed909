"""How often a chat is told that somebody may not speak, or must wait: a refusal must not become a flood."""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Inbound

AGAIN_S = 3600.0
_MAX_REMEMBERED = 10_000

_Key = tuple[str, str, str, str, str]


class Say(Protocol):
    """Posts a line in a chat, at best: nothing waits for it, and nothing is tried again."""

    def __call__(self, thread: ThreadKey, words: str, *, private: bool) -> None: ...


class Refusals:
    """Says no line to a person in a chat again too soon. Remembers a bounded number of them."""

    def __init__(self, say: Say, clock: Clock) -> None:
        self._say = say
        self._clock = clock
        self._said: OrderedDict[_Key, float] = OrderedDict()

    def tell(self, item: Inbound, words: str, *, again_after_s: float = AGAIN_S, about: str = "") -> None:
        """Post `words` where `item` came from, unless its author read them there in the last
        `again_after_s` seconds. `about` names a line whose words change."""
        thread, now = item.thread, self._clock.monotonic()
        key = (thread.channel, thread.account, thread.chat, item.author.id, about or words)
        said = self._said.get(key)
        if said is not None and now - said < again_after_s:
            return
        self._said[key] = now
        self._said.move_to_end(key)
        if len(self._said) > _MAX_REMEMBERED:
            self._said.popitem(last=False)
        self._say(thread, words, private=item.private)
