"""The gateway's side of an adapter, in memory: what `parlour.testing` ships."""

from parlour.testing.fakes import MemoryInbox, MemoryTimeline, QuickClock, every_event

__all__ = ["MemoryInbox", "MemoryTimeline", "QuickClock", "every_event"]
