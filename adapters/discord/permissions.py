"""What Discord lets the bot do: its permissions in each server, and where its button presses go.

Not here: the intent to read messages, which the login checks (`gateway`). A channel's own settings can take a
permission away; only the servers' are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from adapters.discord.sdk import discord
from adapters.discord.settings import invite_link
from adapters.json_fields import mappings, text
from adapters.permissions import ChannelUse, PermissionGap

_ADMINISTRATOR = 1 << 3
_NEEDED: Mapping[int, tuple[str, str]] = MappingProxyType(
    {
        1 << 10: ("View Channels", "no message of its channels arrives"),
        1 << 11: ("Send Messages", "it cannot answer in channels"),
        1 << 38: ("Send Messages in Threads", "it cannot answer in threads"),
        1 << 15: ("Attach Files", "long answers, files and voice replies cannot be sent"),
        1 << 16: ("Read Message History", "missed messages are not read back, and answers may repeat"),
    }
)
_SERVERS = 200
"""As many as Discord lists in one call."""
_SHOWN = 5
_NAME_CHARS = 100


async def permission_gaps(client: discord.Client, use: ChannelUse) -> tuple[PermissionGap, ...]:
    """What the bot may not do. One call with a logged-in client. Raises as the client's calls."""
    about = client.application
    gaps = []
    if about is not None and about.interactions_endpoint_url:
        gaps.append(
            PermissionGap(
                missing="the application has an Interactions Endpoint URL",
                effect="button presses and slash commands go there and not to the bot",
                fix="empty that field on the application's page General Information",
            )
        )
    if use.rooms == "never":
        return tuple(gaps)
    servers = mappings(await client.http.get_guilds(limit=_SERVERS, with_counts=False), most=_SERVERS)
    link = invite_link(str(about.id if about is not None else "APPLICATION_ID"))
    if not servers:
        gaps.append(
            PermissionGap(
                missing="the bot is in no server",
                effect="no one can write to it, not even in private",
                fix=f"open {link}",
            )
        )
    return (*gaps, *_in_servers(servers, link))


def _in_servers(servers: Sequence[Mapping[str, Any]], link: str) -> list[PermissionGap]:
    gaps = []
    for bit, (name, effect) in _NEEDED.items():
        without = [_name(one) for one in servers if not _has(one, bit)]
        if without:
            more = f" and {len(without) - _SHOWN} more" if len(without) > _SHOWN else ""
            gaps.append(
                PermissionGap(
                    missing=f"the permission {name} is missing in {', '.join(without[:_SHOWN])}{more}",
                    effect=effect,
                    fix=f"turn it on for the bot's role in Server Settings, Roles, or open {link} again",
                )
            )
    return gaps


def _has(server: Mapping[str, Any], bit: int) -> bool:
    try:
        granted = int(str(server.get("permissions")))
    except ValueError:
        return True  # Discord said nothing about it
    return bool(granted & (bit | _ADMINISTRATOR))


def _name(server: Mapping[str, Any]) -> str:
    return text(server.get("name"), most=_NAME_CHARS) or text(server.get("id"), most=_NAME_CHARS)
