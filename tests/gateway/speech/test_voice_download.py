"""The voice that is fetched when a person first asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.models.manifest import HubSource, Model
from gateway.runtime.tasks import Supervisor
from gateway.speech.voice_download import VoiceDownload
from tests.gateway.models.hub_server import FakeHub, model_of


class DownloadHarness:
    """A download of a small model, and the lines that people read about it."""

    def __init__(self, folder: Path, model: Model) -> None:
        self.supervisor = Supervisor()
        self.path = model.directory(folder) / model.largest.name
        self.download = VoiceDownload(folder, self.path.exists, self.supervisor, model=model)
        self.lines: list[tuple[str, str]] = []

    def ask(self, person: str) -> str:
        async def note(words: str) -> None:
            self.lines.append((person, words))

        return self.download.request(person, note)

    async def ended(self) -> None:
        async with asyncio.timeout(60):
            await self.supervisor.wait_idle()


@pytest.fixture
async def hub() -> AsyncIterator[FakeHub]:
    async with FakeHub() as running:
        yield running


async def test_it_is_fetched_once_and_everyone_who_asked_reads_that_it_is_there(
    tmp_path: Path, hub: FakeHub
) -> None:
    harness = DownloadHarness(tmp_path, model_of(hub.source))
    assert harness.ask("ann").startswith("The voice that reads aloud is being fetched now (0.2 MB)")
    assert harness.ask("ann") == "The voice that reads aloud is being fetched: 0 % of 0.2 MB is there."
    harness.ask("ben")
    await harness.ended()
    assert [person for person, _ in harness.lines] == ["ann", "ben"]
    assert {words for _, words in harness.lines} == {
        "The voice is there: from now on I read my answers aloud."
    }
    assert harness.ask("eve") == ""


async def test_a_failure_is_said_and_the_next_request_tries_again(tmp_path: Path) -> None:
    harness = DownloadHarness(tmp_path, model_of(HubSource(base_url="http://127.0.0.1:1")))
    harness.ask("ann")
    await harness.ended()
    ((_, words),) = harness.lines
    assert "could not be fetched" in words
    assert "127.0.0.1" not in words
    assert "is being fetched now" in harness.ask("ann")
    await harness.ended()
