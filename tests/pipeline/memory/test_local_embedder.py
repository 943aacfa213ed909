"""The local embedding model: a child that is started when needed, and again after it died."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest

from pipeline.domain.clock import SystemClock
from pipeline.domain.errors import ModelUnavailable
from pipeline.memory.local_embedder import MODEL, LocalEmbedder, is_installed

FAKE = "tests.support.embedding_child"


@pytest.fixture
async def embedder() -> AsyncIterator[LocalEmbedder]:
    made = LocalEmbedder(SystemClock(), main=FAKE, timeout_s=120.0)
    yield made
    await made.close()


async def test_texts_become_vectors_in_their_order(embedder: LocalEmbedder) -> None:
    texts = [f"text {'x' * number}" for number in range(20)]
    vectors = await embedder.passages(texts)
    assert [vector[0] for vector in vectors] == [len(text) for text in texts]
    assert await embedder.question("tea\ud800") == (4.0, 1.0)
    assert embedder.model == MODEL


async def _until_the_death_is_noticed(embedder: LocalEmbedder) -> None:
    while True:
        await embedder.question("tea")


async def test_a_child_that_was_killed_is_started_again(embedder: LocalEmbedder) -> None:
    await embedder.question("tea")
    first = embedder.child_pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    with pytest.raises(ModelUnavailable):
        await _until_the_death_is_noticed(embedder)
    assert await embedder.question("tea") == (3.0, 1.0)
    assert embedder.child_pid != first


@pytest.mark.parametrize("text", ["die", "nonsense", "too few"])
async def test_an_answer_that_is_none_is_an_error_and_the_next_request_works(
    embedder: LocalEmbedder, text: str
) -> None:
    with pytest.raises(ModelUnavailable, match="The embedding model failed"):
        await embedder.question(text)
    assert await embedder.question("tea") == (3.0, 1.0)


async def test_a_child_that_hangs_is_ended_at_the_time_limit() -> None:
    embedder = LocalEmbedder(SystemClock(), main=FAKE, timeout_s=120.0)
    try:
        await embedder.question("tea")
        embedder.timeout_s = 0.05
        with pytest.raises(ModelUnavailable, match="no answer within"):
            await embedder.question("hang")
        assert embedder.child_pid is None
    finally:
        await embedder.close()


async def test_a_child_that_cannot_serve_is_tried_five_times_a_minute() -> None:
    embedder = LocalEmbedder(SystemClock(), main="tests.support.no_such_module")
    for _ in range(5):
        with pytest.raises(ModelUnavailable, match="failed"):
            await embedder.question("tea")
    with pytest.raises(ModelUnavailable, match="5 times within a minute"):
        await embedder.question("tea")
    await embedder.close()


async def test_a_cancelled_request_does_not_confuse_the_next_one(embedder: LocalEmbedder) -> None:
    await embedder.question("tea")
    task = asyncio.get_running_loop().create_task(embedder.question("hang"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await embedder.question("tea") == (3.0, 1.0)


async def test_after_close_no_child_is_started(embedder: LocalEmbedder) -> None:
    await embedder.close()
    with pytest.raises(ModelUnavailable, match="shut down"):
        await embedder.question("tea")


@pytest.mark.skipif(not is_installed(), reason="needs the extra parlour[memory]")
async def test_the_real_model_finds_another_language() -> None:
    embedder = LocalEmbedder(SystemClock(), timeout_s=120.0)
    try:
        asked = await embedder.question("Wo wohnt meine Schwester?")
        near, far = await embedder.passages(["My sister lives in Leeds", "I like green tea"])
    finally:
        await embedder.close()
    assert len(asked) == 384
    assert sum(map(float.__mul__, asked, near)) > sum(map(float.__mul__, asked, far))
