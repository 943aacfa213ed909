"""The Discord channel's settings. Values only: the gateway's configuration provides them."""

from __future__ import annotations

from collections.abc import Callable

from adapters.channel import RateLimits
from pipeline.domain.frozen import dataclass

CHANNEL = "discord"

_INVITED_WITH = 274_878_008_384
"""The sum of the permissions that the bot needs: docs/guides/discord.md lists them."""


def invite_link(application_id: str) -> str:
    """The address that adds the bot to a server with every permission that it needs."""
    return (
        f"https://discord.com/oauth2/authorize?client_id={application_id}"
        f"&scope=bot%20applications.commands&permissions={_INVITED_WITH}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordOptions:
    """One Discord bot."""

    token: Callable[[], str]
    """The bot's token, read at each connection."""
    account: str = "main"
    api_base: str | None = None
    """Replaces https://discord.com/api/v10. Applies to every Discord client of the process."""
    gateway_url: str | None = None
    """Replaces wss://gateway.discord.gg/. Applies to every Discord client of the process."""
    rates: RateLimits | None = None
    """None: `rate_limits.DEFAULT_RATES`."""
    previews: bool = True
    """Whether the answer is shown while it is written."""
    acknowledges: bool = False
    """Whether a message that is taken has a reaction until its answer is there."""
    people: tuple[str, ...] = ()
    """User ids of listed people: their direct messages from while the bot was offline are fetched, also
    where it knows no chat with them."""
    rooms: tuple[str, ...] = ()
    """Channel ids, listed for the same purpose."""
    backfill_s: float = 24 * 3600.0
    """Maximum age in seconds of messages that are fetched after the bot was offline."""
