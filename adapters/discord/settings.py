"""The Discord channel's settings. Values only: the gateway's configuration provides them."""

from __future__ import annotations

from collections.abc import Callable

from adapters.channel import RateLimits
from pipeline.domain.frozen import dataclass

CHANNEL = "discord"
DEFAULT_RATES = RateLimits(chat_per_s=0.9, chat_burst=2, account_per_s=40.0, edit_interval_s=1.2)
"""Discord's documentation: 50 calls a second per bot. A chat's limits are only in response headers; posts and
edits count separately, about five in five seconds each. discord.py delays calls beyond them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordSettings:
    """One Discord bot."""

    token: Callable[[], str]
    """The bot's token, read at each connection."""
    account: str = "main"
    api_base: str | None = None
    """Replaces https://discord.com/api/v10. Applies to every Discord client of the process."""
    gateway_url: str | None = None
    """Replaces wss://gateway.discord.gg/. Applies to every Discord client of the process."""
    rates: RateLimits | None = None
    """None: DEFAULT_RATES."""
    previews: bool = True
    """Whether the answer is shown while it is written."""
    people: tuple[str, ...] = ()
    """User ids of listed people: their direct messages from while the bot was offline are fetched, also
    where it knows no chat with them."""
    rooms: tuple[str, ...] = ()
    """Channel ids, listed for the same purpose."""
    backfill_s: float = 24 * 3600.0
    """Maximum age in seconds of messages that are fetched after the bot was offline."""
