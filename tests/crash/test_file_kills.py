"""Death while the files of a message are read and stored: it is answered once, with all of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pipeline.llm.scripted import ScriptedLlm
from tests.support.file_reader import PICTURE, SCALED, FakeFileReader
from tests.support.forked_children import child_up
from tests.support.harness import open_gateway
from tests.support.platforms.telegram import FakeTelegram

pytestmark = pytest.mark.crash

_CRASHED = 137
_SEES = 'llm.model="openai/gpt-4o-mini"'


@pytest.mark.parametrize("crash_at", ["read:1", "read:2", "turn-commit-before"])
async def test_an_album_is_answered_once_with_all_its_pictures_wherever_the_process_died(
    tmp_path: Path, crash_at: str
) -> None:
    async with FakeTelegram() as platform:
        overrides = (*platform.overrides(tmp_path), _SEES)
        data, ann = tmp_path / "data", platform.person("ann")
        chat = platform.private_chat(ann)
        async with child_up(
            "tests.support.file_child", str(data), crash_at, *overrides, log=tmp_path / "child.log"
        ) as child:
            platform.send(chat, ann, "photo", PICTURE + b"one", album="g1", caption="look", width=9)
            platform.send(chat, ann, "photo", PICTURE + b"two", album="g1", width=9)
            async with asyncio.timeout(60):
                assert await child.wait() == _CRASHED
        if crash_at == "turn-commit-before":
            # They are on record: nothing is fetched again.
            platform.state.files.clear()
        llm, reader = ScriptedLlm.echo(), FakeFileReader()
        async with open_gateway(data, *overrides, llm=llm, file_reader=reader):
            await platform.until(lambda: len(platform.bot_texts(chat)) == 1, timeout_s=120)
            await platform.say(chat, ann, "and now?")
            await platform.until(lambda: len(platform.bot_texts(chat)) == 2, timeout_s=120)
        shown = [sorted(request.pictures.values()) for request in llm.requests]
        assert shown == [[SCALED + b"one", SCALED + b"two"]] * 2
        assert len(reader.asked) == (0 if crash_at == "turn-commit-before" else 2)
        stored = [path for path in (data / "files").rglob("*") if path.is_file()]
        assert len(stored) == 2
