"""Receiving by webhook: only Telegram gets in, and 200 means durable."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from adapters.channel import Acceptance
from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.settings import TelegramOptions
from adapters.telegram.webhook import MAX_BODY, SECRET_HEADER
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import ConfigurationError, StorageError
from pipeline.domain.messages import Inbound
from tests.adapters.telegram.harness import Inbox, turning
from tests.adapters.telegram.payloads import message, press
from tests.support.gateway_process import free_port
from tests.support.platforms.telegram import FakeTelegram

SECRET = "s3cret-" * 5
PATH = "/hooks/telegram"


@dataclass(slots=True, kw_only=True)
class Hooked:
    """An adapter behind a real HTTP server, registered with a fake Telegram."""

    fake: FakeTelegram
    adapter: TelegramAdapter
    inbox: Inbox
    clock: ManualClock
    url: str
    session: aiohttp.ClientSession
    secrets: list[str] = field(default_factory=lambda: [SECRET])

    async def post(self, data: bytes | str, *secrets: str) -> int:
        headers = [(SECRET_HEADER, secret) for secret in secrets]
        async with self.session.post(self.url, data=data, headers=headers) as response:
            return response.status


@contextlib.asynccontextmanager
async def hooked(*, receiving: bool = True) -> AsyncIterator[Hooked]:
    port = free_port()
    url = f"http://127.0.0.1:{port}{PATH}"
    secrets, clock = [SECRET], ManualClock()
    async with FakeTelegram(lenient=True) as fake, aiohttp.ClientSession() as session:
        settings = TelegramOptions(
            token=lambda: fake.token,
            api_base=fake.api_base,
            mode="webhook",
            webhook_url=url,
            webhook_secret=lambda: secrets[-1],
        )
        adapter = TelegramAdapter(settings, clock)
        inbox = Inbox(fake.state.changed)
        app = web.Application()
        app.add_routes(adapter.routes())
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        hook = Hooked(
            fake=fake, adapter=adapter, inbox=inbox, clock=clock, url=url, session=session, secrets=secrets
        )
        try:
            async with asyncio.TaskGroup() as group:
                if not receiving:
                    yield hook
                    return
                task = group.create_task(adapter.run(inbox))
                await fake.until(lambda: bool(fake.state.updates.webhook) or task.done())
                yield hook
                task.cancel()
        finally:
            await runner.cleanup()


async def test_updates_arrive_and_are_acknowledged_when_they_are_durable() -> None:
    async with hooked() as hook:
        ann = hook.fake.person("Ann")
        place = hook.fake.private_chat(ann)
        for text in ("one", "two", "three"):
            await hook.fake.say(place, ann, text)
        await hook.fake.until(lambda: hook.fake.unacknowledged() == 0)
        assert hook.inbox.texts == ["one", "two", "three"]
        assert hook.adapter.health().state == "up"


async def test_what_could_not_be_stored_comes_again() -> None:
    tries = iter([True, False])

    def answer(item: Inbound) -> Acceptance:
        if next(tries, False):
            raise StorageError("the disk is full")
        return Acceptance(status="accepted", message_id=item.message_id)

    async with hooked() as hook:
        hook.inbox.answers = answer
        ann = hook.fake.person("Ann")
        await hook.fake.say(hook.fake.private_chat(ann), ann, "again")
        await hook.fake.until(lambda: hook.fake.unacknowledged() == 0)
        assert hook.inbox.texts == ["again"]


async def test_a_thousand_forged_stale_and_malformed_requests_get_nothing_in() -> None:
    chance = random.Random(7)
    good = json.dumps(message(text="forged"))
    async with hooked() as hook:
        hook.secrets.append("another-secret-" * 3)
        forged: list[tuple[bytes | str, tuple[str, ...]]] = [
            (good, ()),
            (good, ("",)),
            (good, (SECRET,)),  # the one of before the rotation
            (good, (hook.secrets[-1] + "x",)),
            (good, (hook.secrets[-1][:-1],)),
            (good, (hook.secrets[-1].upper(),)),
            (good, (hook.secrets[-1], hook.secrets[-1])),
            (good, ("wrong", hook.secrets[-1])),
            (good, ("sécret-ünïcode-" * 2,)),
            (good, ("x" * 4000,)),
        ]
        malformed = [
            b"",
            b"{",
            b"[]",
            b"null",
            b"\xff\xfe",
            b'"text"',
            b"1",
            b"[" * 100_000,
        ]
        malformed += [b'{"update_id": true}', b'{"update_id": 1e400}', b'{"update_id": -1, "message": {}}']
        forged += [(body, (hook.secrets[-1],)) for body in malformed]
        statuses: dict[int, int] = {}
        for _ in range(1000):
            body, secrets = chance.choice(forged)
            if not secrets or chance.random() < 0.3:
                letters = "".join(chance.choices("abcdefghijklmnop-_0123456789", k=chance.randint(1, 60)))
                body, secrets = good, (letters,)
            status = await hook.post(body, *secrets)
            statuses[status] = statuses.get(status, 0) + 1
        assert hook.inbox.items == []
        assert set(statuses) == {400, 401}
        assert sum(statuses.values()) == 1000
        assert min(statuses.values()) > 200
        assert await hook.post(good, hook.secrets[-1]) == 200
        assert hook.inbox.texts == ["forged"]


async def test_a_replayed_update_has_the_identity_of_the_first() -> None:
    async with hooked() as hook:
        body = json.dumps(message(text="once"))
        assert [await hook.post(body, SECRET) for _ in range(3)] == [200, 200, 200]
        assert len({item.native_id for item in hook.inbox.items}) == 1


async def test_a_stranger_is_turned_away_before_the_body_is_read() -> None:
    async with hooked() as hook:
        head = f"Content-Length: 900000\r\n{SECRET_HEADER}: no\r\n\r\n"
        assert b"401" in await raw(hook, head)


async def test_a_body_that_is_too_large_is_refused_whether_it_says_so_or_not() -> None:
    async with hooked() as hook:
        reported = f"Content-Length: {MAX_BODY + 1}\r\n{SECRET_HEADER}: {SECRET}\r\n\r\n"
        assert b"413" in await raw(hook, reported)
        chunks = f"Transfer-Encoding: chunked\r\n{SECRET_HEADER}: {SECRET}\r\n\r\n"
        chunks += ("10000\r\n" + " " * 65_536 + "\r\n") * 17
        assert b"413" in await raw(hook, chunks)
        assert hook.inbox.items == []


async def test_a_body_that_never_ends_is_given_up_after_five_seconds() -> None:
    async with hooked() as hook:
        head = f"Content-Length: 90\r\n{SECRET_HEADER}: {SECRET}\r\n\r\n"
        async with asyncio.TaskGroup() as group:
            line = group.create_task(raw(hook, head + "{"))
            await turning(hook.clock, hook.fake, line.done)
        assert b"408" in line.result()


async def test_a_press_by_webhook_is_answered() -> None:
    async with hooked() as hook:
        assert await hook.post(json.dumps(press("q:0123456789abcdef:0")), SECRET) == 200
        await hook.fake.until(lambda: any(call.method == "answerCallbackQuery" for call in hook.fake.calls))
        assert len(hook.inbox.items) == 1


async def test_while_nothing_receives_telegram_keeps_its_updates() -> None:
    async with hooked(receiving=False) as hook:
        assert await hook.post(json.dumps(message(text="early")), SECRET) == 503
        assert hook.inbox.items == []


async def test_a_webhook_that_somebody_took_is_set_again_and_a_new_secret_is_reported() -> None:
    async with hooked() as hook:
        updates = hook.fake.state.updates
        updates.webhook = {"url": "https://elsewhere.example/", "secret": ""}
        await turning(hook.clock, hook.fake, lambda: updates.webhook["url"] == hook.url)
        assert updates.webhook["secret"] == SECRET
        hook.secrets.append("rotated-" * 5)
        await turning(hook.clock, hook.fake, lambda: updates.webhook["secret"] != SECRET)
        assert updates.webhook == {"url": hook.url, "secret": hook.secrets[-1]}


@pytest.mark.parametrize("secret", ["", " ", "s" * 31, "with spaces in " * 3, "ü" * 40, "x" * 257])
async def test_a_secret_that_protects_nothing_is_refused_at_the_start(secret: str) -> None:
    async with FakeTelegram() as fake:
        settings: dict[str, Any] = {"mode": "webhook", "webhook_url": "https://bot.example/x"}
        adapter = TelegramAdapter(
            TelegramOptions(
                token=lambda: fake.token, api_base=fake.api_base, webhook_secret=lambda: secret, **settings
            ),
            ManualClock(),
        )
        with pytest.raises(ConfigurationError, match="webhook_secret"):
            await adapter.run(Inbox(fake.state.changed))
        assert not fake.state.updates.webhook


async def test_an_address_that_telegram_refuses_is_named() -> None:
    async with FakeTelegram() as fake:
        settings = TelegramOptions(
            token=lambda: fake.token,
            api_base=fake.api_base,
            mode="webhook",
            webhook_url="http://bot.example/x",
            webhook_secret=lambda: SECRET,
        )
        adapter = TelegramAdapter(settings, ManualClock())
        with pytest.raises(ConfigurationError, match="webhook_url"):
            await adapter.run(Inbox(fake.state.changed))


async def raw(hook: Hooked, request: str) -> bytes:
    """The first line of the answer to a request that need not be complete."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(hook.url.split(":")[2].split("/")[0]))
    try:
        writer.write(f"POST {PATH} HTTP/1.1\r\nHost: x\r\n{request}".encode())
        return await reader.readline()
    finally:
        writer.close()
