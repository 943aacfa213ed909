"""The memory of a running gateway: what is old goes, and what is new is embedded.

Covers: pipeline/memory/vectors.py, gateway/memory/embedding_job.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gateway.app.memory import memory_state
from gateway.config import load
from gateway.storage.ports import Store
from pipeline.domain.clock import Clock, ManualClock, SystemClock
from pipeline.llm.litellm_embedding import LitellmEmbedder
from pipeline.memory.loading import load_memory
from tests.contracts.memory_values import ANN, DAY_S, NOW, arc, fact, kept, write
from tests.support.embedding_server import FakeEmbeddingServer
from tests.support.harness import open_gateway
from tests.support.looks import look_again

pytestmark = pytest.mark.usefixtures("days_pass_quickly")


async def _until(check: Callable[[], Awaitable[bool]]) -> None:
    while not await check():
        await look_again()


async def _until_embedded(store: Store, model: str) -> None:
    async def none_left() -> bool:
        return not await store.memories.without_vector(model, limit=1)

    await _until(none_left)


async def _until_kept(store: Store, *ids: str) -> None:
    async def as_named() -> bool:
        return tuple(await kept(store, ANN)) == ids

    await _until(as_named)


async def _path_of(store: Store, embedder: LitellmEmbedder, clock: Clock) -> tuple[str, int]:
    loaded = await load_memory(
        store.memories, ANN, "xyzzy", first_turn=False, clock=clock, mode="local", embedder=embedder
    )
    return str(loaded.diagnostics["retrieval_path"]), len(loaded.entries)


async def test_facts_are_embedded_by_a_job_and_again_for_another_model(tmp_path: Path) -> None:
    async with FakeEmbeddingServer() as server:
        base = f'memory.embedding_api_base="{server.api_base}"'
        model = "openai/first"
        async with open_gateway(tmp_path, f'memory.embedding="{model}"', base) as harness:
            await write(harness.store, ANN, *(fact(f"f{n}", f"tea number {n}") for n in range(20)))
            await _until_embedded(harness.store, model)
            await write(harness.store, ANN, fact("later", "coffee"))
            await _until_embedded(harness.store, model)
            embedder = LitellmEmbedder(model=model, api_base=server.api_base, api_key="k")
            assert await _path_of(harness.store, embedder, SystemClock()) == ("words_and_vectors", 5)
        assert {one["model"] for one in server.requests} == {"first"}
        async with open_gateway(tmp_path, 'memory.embedding="openai/second"', base) as harness:
            await _until_embedded(harness.store, "openai/second")
        assert sum(len(one["input"]) for one in server.requests if one["model"] == "second") == 21


async def test_a_failing_endpoint_leaves_words_and_is_tried_again(tmp_path: Path) -> None:
    async with FakeEmbeddingServer() as server:
        server.status = 503
        clock = ManualClock(NOW)
        overrides = (
            'memory.embedding="openai/first"',
            f'memory.embedding_api_base="{server.api_base}"',
        )
        async with open_gateway(tmp_path, *overrides, clock=clock) as harness:
            await write(harness.store, ANN, fact("f1", "xyzzy tea"))
            await server.arrived.wait()
            embedder = LitellmEmbedder(model="openai/first", api_base=server.api_base, api_key="k")
            assert await _path_of(harness.store, embedder, clock) == ("token_recall_after_embed_error", 1)
            server.status = 200
            while await harness.store.memories.without_vector("openai/first", limit=1):
                await clock.advance(60)


async def test_what_was_not_mentioned_for_long_is_deleted_at_the_start_and_daily(tmp_path: Path) -> None:
    clock = ManualClock(NOW)
    async with open_gateway(tmp_path, "memory.keep_days=10", clock=clock) as harness:
        await write(harness.store, ANN, fact("old", "tea", last_referenced_at=NOW - 9.5 * DAY_S))
        await write(harness.store, ANN, fact("new", "coffee"), arc=arc("s1", "x", ended_at=NOW - 9.5 * DAY_S))
        await clock.advance(DAY_S + 1)
        await _until_kept(harness.store, "new")
        assert await harness.store.memories.arcs(ANN) == ()
    later = ManualClock(NOW + 100 * DAY_S)
    async with open_gateway(tmp_path, "memory.keep_days=0", clock=later) as harness:
        assert await kept(harness.store, ANN) == ["new"]
    async with open_gateway(tmp_path, "memory.keep_days=10", clock=later) as harness:
        await _until_kept(harness.store)


@pytest.mark.parametrize(
    ("override", "good", "words"),
    [
        ("memory.mode=incognito", True, "incognito: nothing is remembered"),
        ("memory.keep_days=30", True, "kept for 30 days; found by words"),
        ("memory.keep_days=0", True, "kept until it is deleted; found by words"),
        (
            'memory.embedding="openai/first"',
            True,
            "kept for 365 days; found by words, and by vectors of openai/first with 64 numbers",
        ),
    ],
)
async def test_doctor_says_how_the_memory_is(override: str, good: bool, words: str) -> None:
    async with FakeEmbeddingServer() as server:
        base = [f'memory.embedding_api_base="{server.api_base}"'] if "embedding" in override else []
        found = await memory_state(load(None, {}, [override, *base]), SystemClock())
    assert found[0] is good
    assert found[1].startswith(words)
