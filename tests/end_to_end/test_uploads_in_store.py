"""Uploads of the page on Postgres: in the store until their turn has taken them, also if the process dies.

Covers: gateway/app/page_media.py, gateway/storage/postgres/blobs.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import asyncpg
import pytest

from gateway.config import environment
from tests.support.gateway_process import SCRIPTED, GatewayProcess
from tests.support.web_client import Frame, WebChat

pytestmark = pytest.mark.crash

_CONTENT = b"The kettle boils at ninety-one degrees up here.\n" * 12_000
"""More than two chunks."""
_ON_POSTGRES = ('storage.kind="postgres"', 'storage.url="env:DATABASE_OF_THE_TEST"')


@pytest.fixture
async def gateway(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[GatewayProcess]:
    monkeypatch.setenv("DATABASE_OF_THE_TEST", postgres_url)
    async with GatewayProcess(tmp_path, overrides=(*SCRIPTED, *_ON_POSTGRES)) as gateway:
        yield gateway


async def _upload(gateway: GatewayProcess, chat: WebChat) -> str:
    headers = {"Authorization": f"Bearer {gateway.token}", "Origin": gateway.url}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{gateway.url}/files/{chat.chat}", data=_CONTENT) as response,
    ):
        assert response.status == 200, await response.text()
        return str((await response.json())["handle"])


def _message(client_id: str, handle: str) -> Frame:
    file = {"handle": handle, "mime": "text/plain", "name": "kettle.txt", "size": len(_CONTENT)}
    return {"type": "message", "client_id": client_id, "text": "read it", "files": [file]}


async def _stored() -> tuple[int, int]:
    """The number of uploads in the store, and of their chunks."""
    connection = await asyncpg.connect(environment()["DATABASE_OF_THE_TEST"])
    blobs = await connection.fetchval("SELECT count(*) FROM parlour.blobs")
    chunks = await connection.fetchval("SELECT count(*) FROM parlour.blob_chunks")
    await connection.close()
    return blobs, chunks


def _taken(folder: Path) -> bool:
    """Whether the conversation's files have it."""
    return any(path.is_file() and path.read_bytes() == _CONTENT for path in folder.rglob("*"))


async def test_an_upload_waits_in_the_store_and_is_gone_after_its_turn(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    async with WebChat() as chat:
        await gateway.start()
        await chat.connect(gateway.url, gateway.token)
        handle = await _upload(gateway, chat)
        assert await _stored() == (1, 3)
        assert not _taken(tmp_path)
        await chat.send_frame(_message("c1", handle))
        assert "kettle.txt" in (await chat.answer(await chat.accepted("c1"))).text
        await chat.send_text("c2", "and now")
        await chat.answer(await chat.accepted("c2"))
        assert await gateway.stop() == 0
    assert await _stored() == (0, 0)
    assert _taken(tmp_path)


async def test_the_next_process_reads_the_upload_of_one_that_died(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    async with WebChat() as chat:
        await gateway.start(crash_at="inbox-commit-after:1")
        await chat.connect(gateway.url, gateway.token)
        handle = await _upload(gateway, chat)
        await chat.send_frame(_message("c1", handle))
        await chat.read_to_the_end()
        await gateway.wait_exit()
        assert await _stored() == (1, 3)
        await gateway.start()
        await chat.connect(gateway.url, gateway.token)
        await chat.send_frame(_message("c1", handle))
        assert "kettle.txt" in (await chat.answer(await chat.accepted("c1"))).text
        assert await gateway.stop() == 0
    assert await _stored() == (0, 0)
    assert _taken(tmp_path)
