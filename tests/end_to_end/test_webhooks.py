"""Webhooks through the gateway's own server: what the platforms post is answered, what anybody else posts
leaves no row."""

from __future__ import annotations

import json
import random
from pathlib import Path

import aiohttp

from tests.support.gateway_process import free_port
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.platforms.platform import FakePlatform
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.slack_delivery import signed
from tests.support.platforms.telegram import FakeTelegram

SECRET = "s3cret_of-the-webhook_0123456789abcdef"
FORGERIES = 200


def _telegram(platform: FakeTelegram, folder: Path, port: int) -> list[str]:
    secret = folder / "webhook-secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    section = "channels.telegram"
    return [
        *platform.overrides(folder),
        f'{section}.mode="webhook"',
        f'{section}.webhook_url="http://127.0.0.1:{port}/telegram/main"',
        f'{section}.webhook_secret="file:{secret}"',
    ]


def _server(port: int) -> list[str]:
    return ["channels.web.enabled=true", f"server.port={port}"]


async def _answered(platform: FakePlatform) -> None:
    ann = platform.person("ann")
    chat = platform.private_chat(ann)
    await platform.say(chat, ann, "hello")
    await platform.until(lambda: platform.bot_texts(chat) == ["You said: hello"])
    await platform.until(lambda: platform.unacknowledged() == 0)


async def _rows(harness: GatewayHarness) -> tuple[int, int]:
    counts = await harness.store.counts()
    return counts.inbox_open + counts.inbox_done, counts.records


async def test_telegram_posts_to_the_gateway_and_forgeries_leave_no_row(tmp_path: Path) -> None:
    port = free_port()
    async with FakeTelegram() as platform:
        given = _telegram(platform, tmp_path, port)
        async with open_gateway(tmp_path / "data", *_server(port), *given) as harness:
            await _answered(platform)
            before = await _rows(harness)
            chance = random.Random(5)
            async with aiohttp.ClientSession() as session:
                for number in range(FORGERIES):
                    update = {"update_id": 10_000 + number, "message": _message(number)}
                    headers = {"X-Telegram-Bot-Api-Secret-Token": _wrong(SECRET, chance)}
                    if number % 10 == 0:
                        headers.clear()
                    url = f"http://127.0.0.1:{port}/telegram/main"
                    async with session.post(url, json=update, headers=headers) as answer:
                        assert answer.status == 401
            assert await _rows(harness) == before


async def test_slack_posts_to_the_gateway_and_forgeries_leave_no_row(tmp_path: Path) -> None:
    port = free_port()
    async with FakeSlack(http=True) as platform:
        platform.delivery.deliver_to = f"http://127.0.0.1:{port}/slack/events"
        given = platform.overrides(tmp_path)
        async with open_gateway(tmp_path / "data", *_server(port), *given) as harness:
            await _answered(platform)
            before = await _rows(harness)
            chance = random.Random(6)
            inner = {"type": "message", "channel": "D1", "channel_type": "im", "user": "U1", "text": "hello"}
            async with aiohttp.ClientSession() as session:
                for number in range(FORGERIES):
                    event = platform.workspace.event({**inner, "ts": f"1700000000.{number:06}"})
                    body = json.dumps(event).encode()
                    secret = _wrong(platform.signing_secret, chance)
                    headers = {"Content-Type": "application/json", **signed(body, secret)}
                    if number % 10 == 0:
                        del headers["X-Slack-Signature"]
                    async with session.post(
                        platform.delivery.deliver_to, data=body, headers=headers
                    ) as answer:
                        assert answer.status == 401
            assert await _rows(harness) == before


def _message(number: int) -> dict[str, object]:
    person = {"id": 7, "is_bot": False, "first_name": "Eve"}
    chat = {"id": 7, "type": "private", "first_name": "Eve"}
    return {
        "message_id": number + 1,
        "date": 1_700_000_000,
        "from": person,
        "chat": chat,
        "text": "let me in",
    }


def _wrong(secret: str, chance: random.Random) -> str:
    """The secret with one character changed: almost right."""
    place = chance.randrange(len(secret))
    other = "x" if secret[place] != "x" else "y"
    return secret[:place] + other + secret[place + 1 :]
