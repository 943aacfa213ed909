"""kill -9 of a gateway while a command runs: nothing runs on, nothing runs twice, and the answer says so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline.domain.clock import SystemClock
from tests.support.gateway_process import GatewayProcess
from tests.support.openai_server import Behaviour, FakeOpenAiServer
from tests.support.sandbox import processes_with, require_sandbox
from tests.support.tool_talk import UNKNOWN
from tests.support.web_client import WebChat

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]

_MARK = "33166247"
_SCRIPT = f"echo changed > file; (setsid sleep {_MARK} &); sleep {_MARK}"


def _think(body: Mapping[str, Any]) -> Behaviour:
    """Load the group, run the script, and quote its result."""
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    if not results:
        return Behaviour(chunks=(), calls=(("load_tools", json.dumps({"groups": ["shell"]})),))
    if len(results) == 1:
        return Behaviour(chunks=(), calls=(("run_script", json.dumps({"script": _SCRIPT})),))
    return Behaviour(chunks=("The result: ", results[-1]))


async def test_a_command_that_a_kill_cuts_off_ends_and_is_reported_as_unknown(tmp_path: Path) -> None:
    require_sandbox()
    async with FakeOpenAiServer(brain=_think) as model:
        settings = (
            'llm.model="openai_compatible/fake"',
            f"llm.api_base={model.api_base}",
            'voice.transcriber="scripted:hello"',
            'agent.completion="implicit"',
            'tools.groups=["shell"]',
            'log.level="warning"',
        )
        async with GatewayProcess(tmp_path, overrides=settings) as gateway, WebChat() as page:
            await gateway.start()
            await page.connect(gateway.url, gateway.token)
            await page.send_text("c1", "run it")
            message = await page.accepted("c1")
            while not page.seen.questions:
                await page.receive()
            await page.send_approval("a1", page.seen.questions[0], "Allow")
            await page.accepted("a1")
            await _until_processes(2)
            await gateway.kill()
            await _until_processes(0)
            await gateway.start()
            await page.connect(gateway.url, gateway.token)
            answer = await page.answer(message)
            assert len(page.seen.questions) == 1, "it was not asked for again"
            assert processes_with(_MARK) == [], "nor run again"
    assert UNKNOWN in answer.text
    assert not list((tmp_path / "data" / "commands").rglob("file")), "what it had begun to write is not kept"


async def _until_processes(number: int) -> None:
    """Wait until so many processes of the command run: they have no event."""
    async with asyncio.timeout(60):
        while (len(processes_with(_MARK)) >= 2) != bool(number):
            await SystemClock().sleep(0.02)
