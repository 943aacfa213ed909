"""The child process by itself: its first line, its key, and that it never outlives its parent."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import aiohttp
import pytest

from pipeline.llm.local_process import ChildFailed, ChildProcess, ChildSettings
from tests.pipeline.llm.asking import until
from tests.support.tiny_model import tiny_model

PARENT = """
import asyncio, pathlib, sys
from pipeline.llm.local_process import ChildProcess, ChildSettings
async def main():
    child = await ChildProcess.start(ChildSettings(model_path=pathlib.Path(sys.argv[1])))
    await child.ready()
    print(child.pid, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_the_port_answers_only_to_the_key(tmp_path: Path) -> None:
    child = await ChildProcess.start(ChildSettings(model_path=tiny_model(tmp_path / "tiny.gguf")))
    url = f"http://127.0.0.1:{await child.ready()}/v1/models"
    async with aiohttp.ClientSession() as session:
        async with session.get(url) as refused:
            assert refused.status == 401
        async with session.get(url, headers={"Authorization": f"Bearer {child.key}"}) as granted:
            assert granted.status == 200
    command = await asyncio.to_thread(Path(f"/proc/{child.pid}/cmdline").read_text)
    assert child.key not in command
    await child.stop()
    await child.stop()


@pytest.mark.crash
async def test_a_killed_parent_takes_the_child_along(tmp_path: Path) -> None:
    model = tiny_model(tmp_path / "tiny.gguf")
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", PARENT, str(model), stdout=PIPE)
    assert parent.stdout is not None
    async with asyncio.timeout(60):
        child_pid = int(await parent.stdout.readline())
        parent.kill()
        await parent.wait()
        await until(lambda: not _alive(child_pid))


async def test_a_file_that_is_no_model_is_said_before_the_child_ends(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")
    child = await ChildProcess.start(ChildSettings(model_path=broken))
    with pytest.raises(ChildFailed, match=r"\w+"):
        await child.ready()
    assert "exit code 1" in await child.ended()
    await child.stop()


async def test_a_child_that_dies_while_loading_says_how_it_ended() -> None:
    child = await ChildProcess.start(ChildSettings(model_path=Path("never-read.gguf")))
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(ChildFailed, match="signal 9"):
        await child.ready()
    await child.stop()


def _alive(pid: int) -> bool:
    """False for a zombie too: no one but init can reap the orphan."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
