"""What a platform lets a bot do, compared with what the configuration uses.

Not here: whether the credentials work (`adapters.channel.CheckableChannel`).
"""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelUse:
    """What the configuration wants to do on a channel."""

    rooms: Literal["addressed", "may_answer", "all", "never"] = "addressed"
    """When the bot answers in rooms."""
    hear_rooms: bool = False
    """Whether it transcribes the voice notes of rooms."""
    room_messages: int = 0
    """How many messages before the one addressed to it the model gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionGap:
    """One thing that the platform does not let the bot do. The texts are clauses for the operator."""

    missing: str
    """What is missing."""
    effect: str
    """What does not work because of it."""
    fix: str
    """What to click."""
    needed: bool = True
    """Whether the configuration uses it; else the operator may have meant it so."""

    def words(self) -> str:
        """The gap as one line."""
        return f"{self.missing}: {self.effect}; {self.fix}"


@runtime_checkable
class PermissionCheckingChannel(Protocol):
    """A channel that can say what its bot may not do, without receiving anything."""

    async def permission_gaps(self, use: ChannelUse) -> tuple[PermissionGap, ...]:
        """What the bot may not do and `use` or its normal work needs; empty if nothing is missing.

        Raises as `CheckableChannel.check_credentials`, and is called after it.
        """
        ...
