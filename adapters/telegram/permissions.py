"""What Telegram lets the bot do: groups, privacy mode, and where its updates go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from adapters.json_fields import mapping, text
from adapters.permissions import ChannelUse, PermissionGap
from adapters.telegram.api import TelegramApi
from adapters.telegram.settings import TelegramOptions

_ERROR_CHARS = 300
_URL_CHARS = 2_000
_PRIVACY_FIX = (
    "send /setprivacy to @BotFather, choose the bot, Disable, then remove the bot from each group and add it "
    "again"
)


async def permission_gaps(
    api: TelegramApi, settings: TelegramOptions, use: ChannelUse
) -> tuple[PermissionGap, ...]:
    """What the bot may not do. Two calls. Raises TelegramError."""
    me = mapping(await api.call("getMe", {}))
    hook = mapping(await api.call("getWebhookInfo", {}))
    return (*_in_groups(me, use), *_of_webhook(hook, settings))


def _in_groups(me: Mapping[str, Any], use: ChannelUse) -> list[PermissionGap]:
    if use.rooms == "never":
        return []
    if me.get("can_join_groups") is False:
        return [
            PermissionGap(
                missing="the bot may not join groups",
                effect="it answers in private chats only",
                fix="to allow it, send /setjoingroups to @BotFather, choose the bot, Enable",
                needed=_reads_all(use) or use.hear_rooms,
            )
        ]
    if me.get("can_read_all_group_messages") is not False:
        return []
    needing = {
        f'rooms = "{use.rooms}"': _reads_all(use),
        "hear_rooms": use.hear_rooms,
        f"room_messages = {use.room_messages}": use.room_messages > 0,
    }
    affected = [name for name, wanted in needing.items() if wanted]
    if not affected:
        return []
    return [
        PermissionGap(
            missing="privacy mode is on, so groups send it only what is addressed to it",
            effect=f"{' and '.join(affected)} cannot work in groups in which it is no administrator",
            fix=_PRIVACY_FIX,
            # The messages before a mention are extra: the default setting needs no change at @BotFather.
            needed=_reads_all(use) or use.hear_rooms,
        )
    ]


def _reads_all(use: ChannelUse) -> bool:
    """Whether it works on messages that are not addressed to it."""
    return use.rooms in ("all", "may_answer")


def _of_webhook(hook: Mapping[str, Any], settings: TelegramOptions) -> list[PermissionGap]:
    url = text(hook.get("url"), most=_URL_CHARS)
    if settings.mode == "polling" and url:
        return [
            PermissionGap(
                missing=f"Telegram sends the bot's messages to a webhook at {urlsplit(url).netloc}",
                effect="a program there receives them until Parlour starts, which removes the webhook",
                fix='stop that program, or set mode = "webhook" if it is this gateway',
                needed=False,
            )
        ]
    if settings.mode == "webhook" and url and url != settings.webhook_url:
        return [
            PermissionGap(
                missing=f"Telegram has another webhook, at {urlsplit(url).netloc}",
                effect="messages go there until Parlour starts, which registers webhook_url",
                fix="stop the program there",
                needed=False,
            )
        ]
    failure = text(hook.get("last_error_message"), most=_ERROR_CHARS)
    if settings.mode == "webhook" and failure and hook.get("pending_update_count"):
        return [
            PermissionGap(
                missing=f"Telegram cannot deliver to webhook_url and says: {failure}",
                effect="messages wait at Telegram, for a day at most",
                fix="start the gateway, and check the proxy, its certificate and the address",
            )
        ]
    return []
