"""Real processes of one cluster that are killed, on a real Postgres and a real Valkey: nothing is lost or
shown twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pipeline.domain.clock import SystemClock
from tests.support.cluster import Cluster, cluster
from tests.support.gateway_process import SCRIPTED, GatewayProcess, slow_echo
from tests.support.postgres_fixture import skips_without_postgres
from tests.support.web_client import Disconnected, WebChat

SLOW = slow_echo(0.4)


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Cluster]:
    with skips_without_postgres():
        async with cluster(tmp_path, settings=SLOW) as running:
            yield running


async def test_a_killed_workers_answer_is_finished_by_another_on_the_same_page(made: Cluster) -> None:
    edge, first = made.add("edge", "edge"), made.add("first", "work")
    await edge.start()
    await first.start()
    async with WebChat() as chat:
        await chat.connect(edge.url, edge.token)
        await chat.send_text("one", "a b c d e f g h")
        message = await chat.accepted("one")
        await chat.wait_for(lambda frame: frame.get("type") == "llm_token" or "llm_token" in str(frame))
        second = made.add("second", "work")
        await second.start()
        await first.kill()
        line = await chat.answer(message)
        assert line.text == "You said: a b c d e f g h"
        assert len(chat.seen.lines_of(message, "assistant")) == 1
        assert "taken over" not in second.log()


async def test_an_edge_that_is_killed_comes_back_and_shows_what_was_answered_meanwhile(made: Cluster) -> None:
    edge, worker = made.add("edge", "edge"), made.add("work", "work", *SCRIPTED)
    await edge.start()
    await worker.start()
    async with WebChat() as chat:
        await chat.connect(edge.url, edge.token)
        await chat.send_text("one", "hello")
        message = await chat.accepted("one")
        await edge.kill()
        await chat.read_to_the_end()
        await edge.start()
        await _connect(chat, edge)
        line = await chat.answer(message)
        assert line.text == "You said: hello"


async def _connect(chat: WebChat, edge: GatewayProcess) -> None:
    """Connect once the process has the page's account, which a dead one had."""
    while True:
        try:
            await chat.connect(edge.url, edge.token, after=0)
        except Disconnected:
            await SystemClock().sleep(0.1)
        else:
            return
