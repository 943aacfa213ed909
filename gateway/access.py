"""Who may speak to the bot: one function for every kind of inbound item, and the default is no.

The web page's visitors have shown the access token before anything reaches this point, and the
terminal's user is the operator; both channels are local to their owner. A channel that is not listed
here is refused, whatever it sends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.domain.messages import Inbound


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The item may enter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """The item may not enter. `reason` is for the log, not for the sender."""

    reason: str


OWNER_ONLY: Mapping[str, str] = {"web": "owner", "console": "owner"}
"""Channels whose adapter has authenticated one owner, and the author id it gives that owner."""


class AccessPolicy:
    """Decides by (channel, author) from a fixed table."""

    def __init__(self, owners: Mapping[str, str] = OWNER_ONLY) -> None:
        self._owners = dict(owners)

    def authorise(self, item: Inbound) -> Allowed | Denied:
        """Whether `item` may be accepted. Costs nothing and touches nothing."""
        owner = self._owners.get(item.thread.channel)
        if owner is None:
            return Denied(reason=f"channel {item.thread.channel} has no access rule")
        if item.author.id != owner:
            return Denied(reason=f"author {item.author.id} is not the owner of {item.thread.channel}")
        return Allowed()
