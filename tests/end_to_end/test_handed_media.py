"""Files of a platform for workers without its token: the process that has the account fetches them.

Covers: gateway/attachments/handed_media.py, gateway/app/sharing.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from pipeline.domain.clock import SystemClock
from tests.support.cluster import Cluster, cluster
from tests.support.gateway_process import up
from tests.support.platforms.platform import Person, Place
from tests.support.platforms.telegram import FakeTelegram
from tests.support.postgres_fixture import skips_without_postgres

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]

_AUDIO = b"OggS, or so it says " * 30_000
"""More than two chunks of a blob. The scripted transcriber reads it."""
_DOCUMENT = b"The kettle boils at ninety-one degrees up here.\n" * 100
_CLOCK = SystemClock()


@pytest.fixture
async def telegram() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram() as fake:
        yield fake


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Cluster]:
    with skips_without_postgres():
        async with cluster(tmp_path) as one:
            yield one


async def _start(made: Cluster, telegram: FakeTelegram, *worker: str) -> tuple[Person, Place]:
    """An edge with the token and a worker without it."""
    edge = made.add("edge", "edge", *telegram.overrides(made.folder))
    work = made.add("work", "work", *worker)
    await edge.start()
    await work.start()
    await up(edge, "telegram")
    ada = telegram.person("Ada")
    return ada, telegram.private_chat(ada)


async def _rows(made: Cluster, query: str) -> list[Any]:
    connection = await asyncpg.connect(made.postgres.url, server_settings={"search_path": "parlour"})
    try:
        return list(await connection.fetch(query))
    finally:
        await connection.close()


async def _left(made: Cluster) -> list[int]:
    """How many blobs, chunks of them and keys are in the store."""
    tables = ("blobs", "blob_chunks", "seal_keys")
    return [(await _rows(made, f"SELECT count(*) AS n FROM {table}"))[0]["n"] for table in tables]


async def _shown(telegram: FakeTelegram, place: Place, words: str) -> None:
    await telegram.until(lambda: any(words in text for text in telegram.bot_texts(place)), timeout_s=120)


async def test_a_voice_note_is_heard_by_a_worker_without_the_token(
    made: Cluster, telegram: FakeTelegram
) -> None:
    ada, place = await _start(made, telegram)
    await telegram.speak(place, ada, _AUDIO, mime="audio/ogg")
    await _shown(telegram, place, "You said: hello")
    assert await _left(made) == [0, 0, 0]
    edge, work = (made.gateways[name].log() for name in ("edge", "work"))
    assert "  page   http" in edge
    assert "  health and metrics at http" in work
    assert not any(line.startswith(("  page", "  token", "  link")) for line in work.splitlines())


async def test_a_document_is_read_by_a_worker_without_the_token(
    made: Cluster, telegram: FakeTelegram
) -> None:
    ada, place = await _start(made, telegram)
    telegram.send(
        place, ada, "document", _DOCUMENT, caption="read it", file_name="kettle.txt", mime_type="text/plain"
    )
    await _shown(telegram, place, "kettle.txt")
    assert await _left(made) == [0, 0, 0]


async def test_off_the_record_a_note_is_sealed_on_its_way_and_nothing_of_it_stays(
    made: Cluster, telegram: FakeTelegram
) -> None:
    ada, place = await _start(made, telegram)
    await telegram.say(place, ada, "/otr")
    await _shown(telegram, place, "record")
    await telegram.speak(place, ada, _AUDIO, mime="audio/ogg")
    await _shown(telegram, place, "You said: hello")
    async with _CLOCK.timeout(60):
        while await _left(made) != [0, 0, 0]:
            await _CLOCK.sleep(0.05)
    assert await _left(made) == [0, 0, 0]


async def test_a_file_that_is_too_large_or_gone_is_refused_in_the_words_of_the_platform(
    made: Cluster, telegram: FakeTelegram
) -> None:
    ada, place = await _start(made, telegram, "files.max_mb=1")
    telegram.send(
        place,
        ada,
        "document",
        b"x" * 1_500_000,
        caption="read it",
        file_name="large.txt",
        mime_type="text/plain",
    )
    await _shown(telegram, place, "1 MB")
    assert await _left(made) == [0, 0, 0]
