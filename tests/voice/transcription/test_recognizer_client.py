"""One recogniser's process and its successor, without a model."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from voice.errors import TranscriberUnavailable
from voice.transcription.recognizer_client import Recogniser
from voice.workers.child import command


async def test_closing_during_a_replacement_leaves_neither_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = command("tests.voice.transcription.pool_child", "--log", str(log), "--never-warm")
    recogniser = Recogniser(program, lambda _: None, start_deadline_s=60.0)
    await recogniser.start()
    async with asyncio.TaskGroup() as group:
        renewing = group.create_task(failure_of_renewal(recogniser))
        async with asyncio.timeout(60):
            while len(log.read_text().splitlines()) < 3:  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.01)
        fresh = int(log.read_text().split()[-1])
        await recogniser.close()
        with pytest.raises(ProcessLookupError):
            os.kill(fresh, 0)
    assert renewing.result() is not None
    assert recogniser.pid is None


async def failure_of_renewal(recogniser: Recogniser) -> TranscriberUnavailable | None:
    try:
        await recogniser.renew()
    except TranscriberUnavailable as error:
        return error
    return None
