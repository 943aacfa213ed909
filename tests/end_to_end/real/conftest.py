"""A gateway process with the real Whisper, and a browser whose microphone plays real speech."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.support.browser_fixture import open_chromium
from tests.support.gateway_process import GatewayProcess, free_port
from tests.support.live_page import recording
from tests.support.models import require_models
from tests.voice.clips import CLIPS

CLIP = CLIPS["lv_0880"]


@pytest.fixture(scope="session")
def microphone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clip at the rate that Chromium's fake microphone wants, with silence around it."""
    folder = tmp_path_factory.mktemp("microphone")
    return recording(folder / "speech.wav", CLIP, before_s=0.5, after_s=3.0)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(microphone: Path) -> AsyncIterator[Browser]:
    """This folder's Chromium, with this folder's microphone. It runs on while tests of other folders run."""
    async with open_chromium(microphone) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def gateway(tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    """A gateway with the real Whisper, which repeats its input. With the real model a terminal is answered
    (tests/cli/test_commands.py): the page gets the words of either in the same way."""
    overrides = (f"models.dir={json.dumps(str(require_models()))}", 'llm.model="scripted:echo"')
    async with GatewayProcess(tmp_path, overrides=overrides, port=free_port()) as process:
        await process.start()
        yield process
