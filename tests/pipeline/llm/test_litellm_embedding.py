"""Embeddings by litellm against a real HTTP server on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pipeline.domain.errors import ModelError, ModelRejected, ModelTimeout, ModelUnavailable
from pipeline.llm.litellm_embedding import LitellmEmbedder
from pipeline.memory.embedding import HashedEmbedder
from tests.support.embedding_server import FakeEmbeddingServer

SECRET = "sk-not-a-real-key-0123456789"


@pytest.fixture
async def server() -> AsyncIterator[FakeEmbeddingServer]:
    async with FakeEmbeddingServer() as made:
        yield made


def _embedder(server: FakeEmbeddingServer, timeout_s: float = 60.0) -> LitellmEmbedder:
    return LitellmEmbedder(
        model="openai/fake-e5", api_base=server.api_base, api_key=SECRET, timeout_s=timeout_s
    )


async def test_texts_become_vectors_in_their_order(server: FakeEmbeddingServer) -> None:
    embedder = _embedder(server)
    texts = [f"tea number{number}" for number in range(70)]
    vectors = await embedder.passages(texts)
    expected = await HashedEmbedder().passages(texts)
    assert [round(one[0], 6) for one in vectors] == [round(one[0], 6) for one in expected]
    assert [len(one["input"]) for one in server.requests] == [64, 6]
    assert set(server.keys) == {f"Bearer {SECRET}"}
    assert server.requests[0]["model"] == "fake-e5"
    assert len(await embedder.question("tea")) == 64
    assert embedder.model == "openai/fake-e5"


@pytest.mark.parametrize(
    ("status", "error"), [(401, ModelRejected), (404, ModelRejected), (503, ModelUnavailable)]
)
async def test_a_refusal_is_an_error_without_the_key(
    server: FakeEmbeddingServer, status: int, error: type[ModelError]
) -> None:
    server.status = status
    with pytest.raises(error) as caught:
        await _embedder(server).question("tea")
    assert SECRET not in f"{caught.value} {caught.value.detail}"


async def test_an_answer_with_too_few_vectors_is_an_error(server: FakeEmbeddingServer) -> None:
    server.short = True
    with pytest.raises(ModelUnavailable, match="another number of vectors"):
        await _embedder(server).passages(["a", "b"])


async def test_an_endpoint_that_hangs_is_left_at_the_time_limit(server: FakeEmbeddingServer) -> None:
    await _embedder(server).question("the library is loaded before the clock runs")
    server.hang = True
    with pytest.raises(ModelTimeout):
        await _embedder(server, timeout_s=0.2).question("tea")
