"""Off the record on Postgres: the words are in no file of the server, and a crash of the server, which
empties the table of the keys, ends what is unfinished with words for the person.

Covers: gateway/storage/sealing.py, gateway/storage/postgres/seals.py, gateway/turns/set_aside.py,
gateway/delivery/outbox.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from adapters.channel import Failure
from gateway.delivery.outbox import LOST_WORDS
from gateway.storage.postgres import PostgresStore
from gateway.turns.commands import OTR_OFF_TEXT
from gateway.turns.set_aside import UNREADABLE
from pipeline.domain.events import ErrorEvent
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.end_to_end.test_off_the_record import SECRET, echo, say
from tests.support.channel import MemoryChannel
from tests.support.harness import open_gateway
from tests.support.postgres_fixture import skips_without_postgres
from tests.support.postgres_server import MortalServer, mortal_server


@pytest.fixture
def server(postgres_version: int) -> Iterator[MortalServer]:
    """A server of this test alone."""
    with skips_without_postgres(), mortal_server(postgres_version) as server:
        yield server


async def files_with(server: MortalServer, word: str) -> list[str]:
    """The files of the server that have the word, with what it has in memory written out."""
    connection = await asyncpg.connect(server.url)
    await connection.execute("CHECKPOINT")
    await connection.close()
    files = [path for path in server.data.rglob("*") if path.is_file()]
    return [str(path.relative_to(server.data)) for path in files if word.encode() in path.read_bytes()]


async def test_a_conversation_and_its_end_leave_nothing(tmp_path: Path, server: MortalServer) -> None:
    async with open_gateway(tmp_path, store=PostgresStore(server.url)) as harness:
        await say(harness, "kept: quokka", 0)
        await say(harness, "/otr", 1)
        for number in (2, 3):
            assert SECRET in await say(harness, f"{number} {SECRET} " * 40, number)
        assert await say(harness, "/otr", 4) == OTR_OFF_TEXT
        await say(harness, "kept: wombat", 5)
        assert len(await harness.records("user")) == 2
    assert await files_with(server, "quokka") != []
    assert await files_with(server, "wombat") != []
    assert await files_with(server, SECRET) == []


async def test_an_unfinished_message_ends_with_words(tmp_path: Path, server: MortalServer) -> None:
    held = ScriptedLlm([ScriptedAnswer(chunks=("x",), gate=asyncio.Event())])
    channel = MemoryChannel()
    store = PostgresStore(server.url)
    async with open_gateway(tmp_path, llm=held, channel=channel, store=store, drain_s=0) as harness:
        await say(harness, "/otr", 0)
        accepted = await channel.say(f"tell me of {SECRET}", native_id="n1")
        await channel.until(lambda: held.requests)
    server.stop()
    server.start()
    store, llm = PostgresStore(server.url), echo(1)
    async with open_gateway(tmp_path, channel=channel, llm=llm, store=store) as harness:
        ended = await channel.terminal(accepted.message_id)
        assert isinstance(ended, ErrorEvent)
        assert (ended.code, ended.message) == ("unreadable", UNREADABLE)
        assert SECRET in await say(harness, f"again {SECRET}", 2)
        assert [message.role for message in llm.requests[0].messages] == ["system", "user"]
    assert await files_with(server, SECRET) == []


async def test_an_unsent_answer_is_replaced_by_words(tmp_path: Path, server: MortalServer) -> None:
    channel = MemoryChannel()
    store = PostgresStore(server.url)
    async with open_gateway(tmp_path, channel=channel, llm=echo(1), store=store, drain_s=0.1) as harness:
        await say(harness, "/otr", 0)
        channel.failures.append(Failure(kind="rate_limit", message="slow down", retry_after_s=1.0))
        accepted = await channel.say(SECRET, native_id="n1")
        await channel.terminal(accepted.message_id)
    server.stop()
    server.start()
    async with open_gateway(tmp_path, channel=channel, store=PostgresStore(server.url)):
        assert (await channel.reply(accepted.message_id)).text == LOST_WORDS
    assert await files_with(server, SECRET) == []
