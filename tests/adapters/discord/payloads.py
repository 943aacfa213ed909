"""Gateway payloads in the shapes that Discord sends, to be changed by the tests."""

from __future__ import annotations

from typing import Any

BOT = "900000000000000001"
ADA = "100000000000000001"
CHAT = "200000000000000001"
GUILD = "300000000000000001"
ID = "400000000000000001"
NOW = 1_790_000_000.0
EDITED = "2026-09-21T14:13:10.000000+00:00"
"""Ten seconds before NOW."""


def user(user_id: str = ADA, **change: Any) -> dict[str, Any]:
    """A person."""
    return {"id": user_id, "username": "ada_l", "global_name": "Ada", "discriminator": "0", **change}


def message(content: Any = "hello", **change: Any) -> dict[str, Any]:
    """A message in a direct chat."""
    return {
        "id": ID,
        "channel_id": CHAT,
        "author": user(),
        "content": content,
        "timestamp": "2026-09-21T14:13:00.000000+00:00",
        "edited_timestamp": None,
        "tts": False,
        "mention_everyone": False,
        "mentions": [],
        "mention_roles": [],
        "attachments": [],
        "embeds": [],
        "pinned": False,
        "type": 0,
        "flags": 0,
        **change,
    }


def in_room(content: Any = "hello", **change: Any) -> dict[str, Any]:
    """A message in a server's channel."""
    return message(content, guild_id=GUILD, member={"roles": []}, **change)


def attachment(mime: Any = "image/png", **change: Any) -> dict[str, Any]:
    """A file."""
    return {
        "id": "500000000000000001",
        "filename": "a.png",
        "size": 1234,
        "url": "https://cdn.discordapp.com/attachments/1/2/a.png",
        "proxy_url": "https://media.discordapp.net/attachments/1/2/a.png",
        "content_type": mime,
        **change,
    }


def press(custom_id: Any, **change: Any) -> dict[str, Any]:
    """A pressed button in a direct chat."""
    return {
        "id": ID,
        "application_id": BOT,
        "type": 3,
        "token": "aW50ZXJhY3Rpb246",
        "channel_id": CHAT,
        "user": user(),
        "data": {"custom_id": custom_id, "component_type": 2},
        "message": message(author=user(BOT, bot=True)),
        "version": 1,
        **change,
    }


def slash(name: Any, **change: Any) -> dict[str, Any]:
    """A slash command in a server's channel."""
    return {
        "id": ID,
        "application_id": BOT,
        "type": 2,
        "token": "aW50ZXJhY3Rpb246",
        "channel_id": CHAT,
        "guild_id": GUILD,
        "member": {"user": user(), "roles": []},
        "data": {"id": "1", "name": name, "type": 1},
        "version": 1,
        **change,
    }
