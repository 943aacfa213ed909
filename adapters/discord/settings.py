"""What the Discord channel needs to be told. Values only: the gateway's configuration fills them in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from adapters.channel import RateLimits

CHANNEL = "discord"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordSettings:
    """One Discord bot."""

    token: Callable[[], str]
    """The bot's token, read anew at each connection."""
    account: str = "main"
    api_base: str | None = None
    """In place of https://discord.com/api/v10. Holds for every Discord client of the process."""
    gateway_url: str | None = None
    """In place of wss://gateway.discord.gg/. Holds for every Discord client of the process."""
    rates: RateLimits | None = None
    """None: what Discord bears, as `adapter.RATES` says."""
    previews: bool = True
    """Whether the answer is shown while it is written."""
    backfill_s: float = 24 * 3600.0
    """How far back messages are fetched that came while the bot was away, in seconds."""
