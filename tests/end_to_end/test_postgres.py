"""`parlour serve` on Postgres: a conversation over restarts and over the death of the process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest

from gateway.storage.postgres import PostgresStore
from gateway.storage.sizes import StoreCounts
from tests.support.gateway_process import SCRIPTED, GatewayProcess
from tests.support.looks import look_again
from tests.support.postgres_fixture import skips_without_postgres
from tests.support.postgres_server import MortalServer, mortal_server
from tests.support.web_client import WebChat

pytestmark = pytest.mark.crash

_CRASHED = 137
_ON_POSTGRES = ('storage.kind="postgres"', 'storage.url="env:DATABASE_OF_THE_TEST"')


@pytest.fixture
async def gateway(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[GatewayProcess]:
    monkeypatch.setenv("DATABASE_OF_THE_TEST", postgres_url)
    async with GatewayProcess(tmp_path, overrides=(*SCRIPTED, *_ON_POSTGRES)) as gateway:
        yield gateway


@pytest.fixture
def server(postgres_version: int) -> Iterator[MortalServer]:
    """A server of this test alone."""
    with skips_without_postgres(), mortal_server(postgres_version) as server:
        yield server


async def _ask(chat: WebChat, client_id: str, text: str) -> str:
    await chat.send_text(client_id, text)
    return (await chat.answer(await chat.accepted(client_id))).text


async def _status(gateway: GatewayProcess) -> int:
    async with aiohttp.ClientSession() as session, session.get(f"{gateway.url}/readyz") as response:
        return response.status


async def _counts(url: str) -> StoreCounts:
    store = PostgresStore(url)
    await store.open()
    counts = await store.counts()
    await store.close()
    return counts


async def test_a_conversation_continues_after_a_restart(gateway: GatewayProcess, postgres_url: str) -> None:
    async with WebChat() as chat:
        await gateway.start()
        await chat.connect(gateway.url, gateway.token)
        assert await _ask(chat, "c1", "one") == "You said: one"
        assert await gateway.stop() == 0
        assert not gateway.store_path.exists(), "nothing is kept in a file of the data folder"
        await gateway.start()
        chat.seen.lines.clear()
        await chat.connect(gateway.url, gateway.token, after=0)
        assert await _ask(chat, "c2", "two") == "You said: two"
        await gateway.stop()
        shown = {line.entry_id: line.text for line in chat.seen.lines if line.entry_id}
    assert [shown[entry_id] for entry_id in sorted(shown)][:2] == ["one", "You said: one"]
    counts = await _counts(postgres_url)
    assert (counts.inbox_open, counts.inbox_done, counts.outbox_open) == (0, 2, 0)


@pytest.mark.parametrize("label", ["inbox-commit-after", "turn-commit-before", "send-before"])
async def test_death_at_a_label_and_a_resend_give_one_answer(
    gateway: GatewayProcess, postgres_url: str, label: str
) -> None:
    async with WebChat() as chat:
        await gateway.start(crash_at=f"{label}:1")
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("c1", "one two")
        await chat.read_to_the_end()
        assert await gateway.wait_exit() == _CRASHED

        await gateway.start()
        await chat.connect(gateway.url, gateway.token)
        assert await _ask(chat, "c1", "one two") == "You said: one two"
        await chat.ping()
        assert len(chat.seen.terminals_of(await chat.accepted("c1"))) <= 1
        assert chat.seen.duplicates == 1
        assert await gateway.stop() == 0
    counts = await _counts(postgres_url)
    assert (counts.inbox_open, counts.inbox_done, counts.outbox_open) == (0, 1, 0)


async def test_a_server_that_dies_and_comes_back_costs_no_message(
    tmp_path: Path, server: MortalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_OF_THE_TEST", server.url)
    async with GatewayProcess(tmp_path, overrides=(*SCRIPTED, *_ON_POSTGRES)) as gateway, WebChat() as chat:
        await gateway.start()
        await chat.connect(gateway.url, gateway.token)
        assert await _ask(chat, "c1", "one") == "You said: one"

        server.stop()
        await chat.send_text("c2", "two")
        while await _status(gateway) != 503:
            await look_again()
        assert "c2" not in chat.seen.accepted

        server.start()
        await chat.send_text("c2", "two")
        assert (await chat.answer(await chat.accepted("c2"))).text == "You said: two"
        await gateway.wait_ready()
        assert await gateway.stop() == 0
    counts = await _counts(server.url)
    assert (counts.inbox_open, counts.inbox_done, counts.outbox_open) == (0, 2, 0)
