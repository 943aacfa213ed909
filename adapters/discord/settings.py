"""What the Discord channel needs to be told. Values only: the gateway's configuration fills them in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from adapters.channel import RateLimits

CHANNEL = "discord"
DEFAULT_RATES = RateLimits(chat_per_s=0.9, chat_burst=2, account_per_s=40.0, edit_interval_s=1.2)
"""Discord's documentation: 50 calls a second of one bot. The buckets of a chat are told by headers alone;
posts and edits are counted apart, about five in five seconds each. discord.py delays what exceeds them."""


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
    """None: DEFAULT_RATES."""
    previews: bool = True
    """Whether the answer is shown while it is written."""
    people: tuple[str, ...] = ()
    """User ids of those who are listed: what they wrote in private while the bot was away is fetched, also
    where it knows no chat with them."""
    rooms: tuple[str, ...] = ()
    """Channel ids that are listed, for the same."""
    backfill_s: float = 24 * 3600.0
    """How far back messages are fetched that came while the bot was away, in seconds."""
