"""Signed HTTP: what Slack did not sign, or signed long ago, or for somebody else, comes to nothing."""

from __future__ import annotations

import asyncio
import io
import json
import random
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit

import aiohttp
import pytest

from adapters.slack.webhook import MAX_BODY
from pipeline.domain.clock import ManualClock, SystemClock
from pipeline.domain.errors import StorageError
from tests.adapters.slack.harness import Running, running
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.slack_delivery import signed
from tests.support.platforms.slack_state import APP, TEAM

Headers = dict[str, str] | list[tuple[str, str]]
JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def live() -> AsyncIterator[Running]:
    async with FakeSlack(http=True) as slack, running(slack) as live:
        yield live


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def event_body(live: Running, text: str = "hello", **changes: object) -> bytes:
    ts = live.slack.workspace.next_ts()
    inner = {"type": "message", "channel": "D1", "channel_type": "im", "user": "U1", "ts": ts, "text": text}
    return json.dumps({**live.slack.workspace.event(inner), **changes}).encode()


async def send(
    live: Running,
    session: aiohttp.ClientSession,
    body: bytes,
    headers: Headers,
) -> int:
    async with session.post(live.slack.delivery.deliver_to, data=body, headers=headers) as response:
        await response.read()
        return response.status


async def test_the_address_is_verified_only_when_slack_signed_the_question(
    live: Running, session: aiohttp.ClientSession
) -> None:
    body = json.dumps({"type": "url_verification", "challenge": "c" * 50, "token": "t"}).encode()
    url = live.slack.delivery.deliver_to
    async with session.post(
        url, data=body, headers={**JSON, **signed(body, live.slack.signing_secret)}
    ) as good:
        assert (good.status, await good.text()) == (200, "c" * 50)
    async with session.post(url, data=body, headers={**JSON, **signed(body, "wrong")}) as bad:
        assert (bad.status, await bad.text()) == (401, "")


async def test_a_thousand_forged_stale_replayed_and_malformed_requests_come_to_nothing(
    live: Running, session: aiohttp.ClientSession, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(4)
    good = event_body(live, "the only one")
    stamp = signed(good, live.slack.signing_secret)
    assert await send(live, session, good, {**JSON, **stamp}) == 200
    statuses: list[int] = []
    for number in range(1000):
        body, headers = _hostile(live, number, chance, good, stamp)
        statuses.append(await send(live, session, body, headers))
    assert live.inbox.texts() == ["the only one"]
    assert live.inbox.calls == 1
    assert all(400 <= status < 500 for status in statuses)
    record_property("slack: hostile requests accepted", f"{statuses.count(200)} of {len(statuses)}")


def _hostile(
    live: Running, number: int, chance: random.Random, good: bytes, stamp: dict[str, str]
) -> tuple[bytes, Headers]:
    """One of fourteen errors, by turns."""
    secret, now = live.slack.signing_secret, SystemClock().now()
    body = event_body(live, f"hostile {number}")
    right = signed(body, secret)
    signature = right["X-Slack-Signature"]
    garbage = chance.randbytes(50)
    foreign = event_body(live, "other team", team_id="T9", authorizations=[])
    second = ("X-Slack-Signature", "v0=" + "0" * 64)
    errors: list[tuple[bytes, Headers]] = [
        (body, JSON),
        (body, {**JSON, **signed(body, secrets_like(chance))}),
        (body, {**JSON, **signed(body, secret, at=now - 301 - chance.random() * 1e6)}),
        (body, {**JSON, **signed(body, secret, at=now + 400 + chance.random() * 1e6)}),
        (good, {**JSON, **stamp}),
        (good, {**JSON, **{name.lower(): value for name, value in stamp.items()}}),
        (good, {**JSON, **stamp, "X-Slack-Signature": stamp["X-Slack-Signature"] + "="}),
        (body[:-1] + b" }", {**JSON, **right}),
        (body, {**JSON, **right, "X-Slack-Request-Timestamp": str(int(now) - 1)}),
        (body, {**JSON, **right, "X-Slack-Signature": signature.upper()}),
        (body, {**JSON, **right, "X-Slack-Signature": signature.removeprefix("v0=")}),
        (body, [*JSON.items(), *right.items(), second]),
        (garbage, {**JSON, **signed(garbage, secret)}),
        (foreign, {**JSON, **signed(foreign, secret)}),
    ]
    return errors[number % len(errors)]


def secrets_like(chance: random.Random) -> str:
    return "".join(chance.choice("0123456789abcdef") for _ in range(32))


async def test_a_signature_is_good_once_and_again_after_a_failure(
    live: Running, session: aiohttp.ClientSession
) -> None:
    body = event_body(live)
    headers = {**JSON, **signed(body, live.slack.signing_secret)}
    live.inbox.failures = [StorageError("full")]
    assert await send(live, session, body, headers) == 503
    assert await send(live, session, body, headers) == 200
    assert await send(live, session, body, headers) == 401
    assert live.inbox.texts() == ["hello"]


async def test_a_retry_of_slacks_is_taken_whatever_its_number(
    live: Running, session: aiohttp.ClientSession
) -> None:
    body = event_body(live)
    retry = {"X-Slack-Retry-Num": "3", "X-Slack-Retry-Reason": "http_timeout"}
    headers = {**JSON, **signed(body, live.slack.signing_secret), **retry}
    assert await send(live, session, body, headers) == 200
    assert live.inbox.texts() == ["hello"]


async def test_a_rotated_secret_counts_from_the_next_request(session: aiohttp.ClientSession) -> None:
    secrets = ["old"]
    async with FakeSlack(http=True) as slack, running(slack, signing_secret=lambda: secrets[0]) as live:
        body = event_body(live)
        secrets[0] = "new"
        assert await send(live, session, body, {**JSON, **signed(body, "old")}) == 401
        assert await send(live, session, body, {**JSON, **signed(body, "new")}) == 200


async def test_a_body_that_is_too_long_is_not_read(live: Running, session: aiohttp.ClientSession) -> None:
    body = event_body(live, "x" * (MAX_BODY + 1))
    headers = {**JSON, **signed(body, live.slack.signing_secret)}
    url = live.slack.delivery.deliver_to
    async with session.post(url, data=io.BytesIO(body), headers=headers) as said:
        assert said.status == 413

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 65_536):
            yield body[start : start + 65_536]

    async with session.post(url, data=chunks(), headers=headers) as unsaid:
        assert unsaid.status == 413
    assert live.inbox.calls == 0


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    clock = ManualClock(start=SystemClock().now())
    async with FakeSlack(http=True) as slack, running(slack, clock=clock) as live:
        url = urlsplit(live.slack.delivery.deliver_to)
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        headers = {
            **JSON,
            **signed(b"x" * 100, slack.signing_secret, at=clock.now()),
            "Content-Length": "100",
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"POST {url.path} HTTP/1.1\r\nHost: x\r\n{lines}\r\nxx".encode())
        await writer.drain()
        status = b""
        async with asyncio.timeout(60):
            while not status:
                await clock.advance(1.0)
                try:
                    async with asyncio.timeout(0.05):
                        status = await reader.readline()
                except TimeoutError:
                    continue
        assert b" 408 " in status
        writer.close()


async def test_a_channel_that_does_not_run_lets_slack_come_back(session: aiohttp.ClientSession) -> None:
    async with FakeSlack(http=True) as slack, running(slack) as live:
        body = event_body(live)
        headers = {**JSON, **signed(body, slack.signing_secret)}
        adapter = live.adapter
        assert [route.path for route in adapter.routes()] == ["/slack/events"]
        slack.delivery.ack_deadline_s = 0.2
        adapter._webhook.close()
        assert await send(live, session, body, headers) == 503
        assert live.inbox.calls == 0


async def test_another_apps_payload_is_refused(live: Running, session: aiohttp.ClientSession) -> None:
    for changes in (
        {"api_app_id": "A0OTHER"},
        {"api_app_id": None},
        {"team_id": "T9", "authorizations": None},
    ):
        body = event_body(live, **changes)
        assert await send(live, session, body, {**JSON, **signed(body, live.slack.signing_secret)}) == 403
    shared = event_body(live, team_id="T9", context_team_id=TEAM, api_app_id=APP)
    assert await send(live, session, shared, {**JSON, **signed(shared, live.slack.signing_secret)}) == 200
    assert live.inbox.calls == 1


async def test_another_apps_payload_is_refused_without_an_app_token_too(
    session: aiohttp.ClientSession,
) -> None:
    async with FakeSlack(http=True) as slack, running(slack, app_token=None) as live:
        other = event_body(live, api_app_id="A0OTHER")
        assert await send(live, session, other, {**JSON, **signed(other, slack.signing_secret)}) == 403
        own = event_body(live)
        assert await send(live, session, own, {**JSON, **signed(own, slack.signing_secret)}) == 200
        assert live.inbox.texts() == ["hello"]


async def test_many_large_bodies_at_once_do_not_keep_small_ones_out(
    live: Running, session: aiohttp.ClientSession
) -> None:
    url = urlsplit(live.slack.delivery.deliver_to)
    lines = "".join(f"{name}: {value}\r\n" for name, value in signed(b"x", "wrong").items())
    head = f"POST {url.path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n{lines}\r\n"
    writers = []
    for _ in range(20):
        _, writer = await asyncio.open_connection(url.hostname, url.port)
        writer.write(head.encode() + b"14000\r\n" + b"x" * 0x14000 + b"\r\n")
        await writer.drain()
        writers.append(writer)
    large = event_body(live, "x" * 100_000)
    statuses = set()
    async with asyncio.timeout(30):
        while 413 not in statuses:
            statuses.add(
                await send(live, session, large, {**JSON, **signed(large, live.slack.signing_secret)})
            )
    small = event_body(live, "small")
    assert await send(live, session, small, {**JSON, **signed(small, live.slack.signing_secret)}) == 200
    assert live.inbox.texts()[-1] == "small"
    for writer in writers:
        writer.close()
