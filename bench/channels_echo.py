"""A bare echo bot on each platform's SDK: the floor for the gateway's channels.

`python -m bench.channels_echo CHANNEL NAME=VALUE …`, the pairs as a fake platform's `overrides` give them.
It stores nothing, keeps no order and loses everything when it dies: do not use it as an example of a bot. It
prints a line when it is connected.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

PREFIX = "You said: "


def main(arguments: Sequence[str]) -> None:
    """Echo on the channel `arguments[0]` until killed."""
    channel, *pairs = arguments
    settings = dict(_pair(pair) for pair in pairs)
    {"telegram": _telegram, "slack": _slack, "discord": _discord}[channel](settings)


def _pair(pair: str) -> tuple[str, str]:
    name, _, value = pair.partition("=")
    with suppress(ValueError):  # a bare word is no JSON
        value = str(json.loads(value))
    if value.startswith("file:"):
        value = Path(value.removeprefix("file:")).read_text(encoding="ascii").strip()
    return name.rpartition(".")[2], value


def _connected() -> None:
    sys.stdout.write("connected\n")
    sys.stdout.flush()


def _telegram(settings: Mapping[str, str]) -> None:
    from telegram import Update  # noqa: PLC0415 - each process loads one SDK
    from telegram.ext import Application, ApplicationBuilder, MessageHandler, filters  # noqa: PLC0415 - each echo loads its own SDK alone

    async def echo(update: Update, _context: Any) -> None:
        if update.effective_message is not None:
            await update.effective_message.reply_text(PREFIX + (update.effective_message.text or ""))

    async def tell(_application: Application[Any, Any, Any, Any, Any, Any]) -> None:
        _connected()

    base = settings["api_base"]
    builder = ApplicationBuilder().token(settings["token"])
    builder = builder.base_url(f"{base}/bot").base_file_url(f"{base}/file/bot").concurrent_updates(256)
    application = builder.post_init(tell).build()
    application.add_handler(MessageHandler(filters.TEXT, echo))
    application.run_polling()


def _slack(settings: Mapping[str, str]) -> None:
    from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler  # noqa: PLC0415 - each echo loads its own SDK alone
    from slack_bolt.async_app import AsyncApp  # noqa: PLC0415 - each echo loads its own SDK alone
    from slack_sdk.web.async_client import AsyncWebClient  # noqa: PLC0415 - each echo loads its own SDK alone

    client = AsyncWebClient(token=settings["bot_token"], base_url=settings["api_base"])
    app = AsyncApp(client=client)

    @app.event("message")
    async def echo(event: dict[str, Any], say: Any) -> None:
        await say(PREFIX + event["text"])

    async def run() -> None:
        handler: Any = AsyncSocketModeHandler(app, settings["app_token"], web_client=client)
        await handler.connect_async()
        _connected()
        await asyncio.Event().wait()

    asyncio.run(run())


def _discord(settings: Mapping[str, str]) -> None:
    import discord  # noqa: PLC0415 - each echo loads its own SDK alone
    import yarl  # noqa: PLC0415 - each echo loads its own SDK alone
    from discord.gateway import DiscordWebSocket  # noqa: PLC0415 - each echo loads its own SDK alone
    from discord.http import Route  # noqa: PLC0415 - each echo loads its own SDK alone

    Route.BASE = settings["api_base"]
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(settings["gateway_url"])

    class Echo(discord.Client):
        async def on_ready(self) -> None:
            _connected()

        async def on_message(self, message: discord.Message) -> None:
            if message.author != self.user:
                await message.channel.send(PREFIX + message.content)

    Echo(intents=discord.Intents.all(), guild_ready_timeout=0.0).run(settings["token"], log_handler=None)


if __name__ == "__main__":
    main(sys.argv[1:])
