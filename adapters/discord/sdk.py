"""The only import of discord.py, and the only place that sets its global state.

discord.py reads the addresses of the REST API and of the gateway from class attributes, not from a client:
they apply to every client of the process. `point_at` sets them only when a setting says so, for tests and
for proxies.
"""

from __future__ import annotations

import logging
import warnings

with warnings.catch_warnings():
    # Needed only for voice channels, which are not used here.
    warnings.filterwarnings("ignore", "'audioop' is deprecated", DeprecationWarning)
    import discord
    from discord.gateway import DiscordWebSocket
    from discord.http import Route

__all__ = ["DiscordWebSocket", "Route", "discord", "point_at", "quiet"]


def point_at(*, api_base: str | None, gateway_url: str | None) -> None:
    """Make every discord.py client of this process use another server; None keeps the default address.

    `api_base` includes the version (`https://discord.com/api/v10`), `gateway_url` is a `ws(s)://` address."""
    if api_base is not None:
        Route.BASE = api_base.rstrip("/")
    if gateway_url is not None:
        # The SDK's own URL type.
        DiscordWebSocket.DEFAULT_GATEWAY = type(DiscordWebSocket.DEFAULT_GATEWAY)(gateway_url)


def quiet() -> None:
    """Disable discord.py's logging: some lines contain URLs with an interaction's token, and every reconnect
    logs a traceback. The adapter logs the same events itself."""
    logging.getLogger("discord").setLevel(logging.CRITICAL)
