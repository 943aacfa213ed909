"""The one door to discord.py, and the one place that sets its global state.

discord.py reads the addresses of the REST API and of the gateway from class attributes, not from a client:
they hold for every client of the process. `point_at` sets them only when a setting says so, for tests and
for proxies.
"""

from __future__ import annotations

import logging
import warnings

with warnings.catch_warnings():
    # For voice channels, which nothing here uses.
    warnings.filterwarnings("ignore", "'audioop' is deprecated", DeprecationWarning)
    import discord
    from discord.gateway import DiscordWebSocket
    from discord.http import Route

__all__ = ["DiscordWebSocket", "Route", "discord", "point_at", "quiet"]


def point_at(*, api_base: str | None, gateway_url: str | None) -> None:
    """Let every discord.py client of this process talk to another server; None leaves the address alone.

    `api_base` includes the version (`https://discord.com/api/v10`), `gateway_url` is a `ws(s)://` address."""
    if api_base is not None:
        Route.BASE = api_base.rstrip("/")
    if gateway_url is not None:
        # The SDK's own kind of URL.
        DiscordWebSocket.DEFAULT_GATEWAY = type(DiscordWebSocket.DEFAULT_GATEWAY)(gateway_url)


def quiet() -> None:
    """Keep discord.py's own log lines out: some hold URLs with an interaction's token, and every reconnect
    comes with a traceback. The adapter says in its own words what happens."""
    logging.getLogger("discord").setLevel(logging.CRITICAL)
