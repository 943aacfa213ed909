"""A dictionary of bounded size: the entry that was set or touched longest ago is removed first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


_set: Callable[..., None] = OrderedDict.__setitem__
"""As `super().__setitem__`, which makes an object for each call."""


class BoundedDict(OrderedDict[K, V]):
    """At most `max_entries` entries, in the order in which they were last set or touched, oldest first.

    Setting, `touch` and `get_or_add` move an entry to the end. Reading (`[]`, `get`, `in`, `setdefault` of
    an entry that exists) does not. An entry that exceeds the bound removes the first one, for which
    `on_evict` is called; it is not called for an entry that is deleted or replaced. All of these take
    constant time.
    """

    def __init__(self, max_entries: int, on_evict: Callable[[K, V], None] | None = None) -> None:
        if max_entries < 1:
            raise ValueError("BoundedDict: expected max_entries >= 1")
        super().__init__()
        self._max_entries = max_entries
        self._on_evict = on_evict

    def __setitem__(self, key: K, value: V) -> None:
        _set(self, key, value)
        self.move_to_end(key)
        if len(self) > self._max_entries:
            evicted = self.popitem(last=False)
            if self._on_evict is not None:
                self._on_evict(*evicted)

    def touch(self, key: K) -> None:
        """Move the entry to the end. Raises KeyError if there is none."""
        self.move_to_end(key)

    def get_or_add(self, key: K, make: Callable[[], V]) -> V:
        """The entry's value, set to `make()` if there is none. Moves the entry to the end."""
        if key in self:
            self.move_to_end(key)
        else:
            self[key] = make()
        return self[key]
