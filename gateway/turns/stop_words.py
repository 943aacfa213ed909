"""What a /stop is and has stopped, and the line that says so."""

from __future__ import annotations

from typing import Final

from gateway.storage.ports import InboxEntry
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import SessionCommand

_NOTHING: Final = "There is nothing to stop."
_STOPPED: Final = "Stopped {what}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """What a /stop has stopped."""

    messages: int = 0
    """Turns and waiting messages of its chat, and runs of workflows that were paused."""
    heartbeats: int = 0
    """Heartbeats whose results its chat gets."""

    @property
    def words(self) -> str:
        """The line for the person."""
        counts = ((self.messages, "message"), (self.heartbeats, "heartbeat"))
        named = [f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in counts if count]
        return _STOPPED.format(what=" and ".join(named)) if named else _NOTHING


def stops_all(entry: InboxEntry) -> bool:
    """Whether the entry is a /stop, which stops everything before it."""
    return isinstance(entry.item, SessionCommand) and entry.item.name == "stop"


NONE_STOPPED: Final = Stopped()
