"""Commands of several conversations: one at a time in a folder, a few in all; and a sandbox that breaks.

Covers: gateway/sandbox/commands.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.sandbox.commands import SandboxedCommands
from gateway.sandbox.folders import CommandFolders
from gateway.sandbox.process import SandboxBroken
from gateway.sandbox.protocol import SandboxRequest
from pipeline.domain.clock import ManualClock
from pipeline.domain.ids import ThreadKey
from pipeline.tools.command_end import CommandEnd
from pipeline.tools.shell import CommandResult
from pipeline.tools.tool import ToolFailed
from tests.support.contexts import scope
from tests.support.sandbox import LIMITS

_RUN = "gateway.sandbox.commands.run_in_sandbox"


class Held:
    """A sandbox in which each command runs until it is released."""

    def __init__(self) -> None:
        self.running: dict[str, asyncio.Event] = {}
        self.folders: list[str] = []
        self.changed = asyncio.Condition()

    async def run(
        self, request: SandboxRequest, _on_output: Callable[[bytes], Awaitable[None]]
    ) -> tuple[bytes, CommandEnd]:
        done = self.running[request.argv[0]] = asyncio.Event()
        self.folders.append(request.folder)
        async with self.changed:
            self.changed.notify_all()
        await done.wait()
        del self.running[request.argv[0]]
        return b"", CommandEnd(ending="exit")

    async def until_running(self, *names: str) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: set(self.running) == set(names))


def _commands(folder: Path, clock: ManualClock, *, at_once: int = 2) -> SandboxedCommands:
    def spawn(work: Coroutine[Any, Any, None]) -> None:
        work.close()

    folders = CommandFolders(folder, keep_days=7, clock=clock)
    return SandboxedCommands(folders, limits=LIMITS, at_once=at_once, hidden=(), clock=clock, spawn=spawn)


def _run(commands: SandboxedCommands, name: str, chat: str) -> Coroutine[Any, Any, CommandResult]:
    async def ignore(_data: bytes) -> None:
        """Ignore the output."""

    one = replace(scope(), thread=ThreadKey(channel="web", account="local", chat=chat))
    return commands.run((name,), one, ignore)


async def test_a_folder_has_one_command_at_a_time_and_all_together_a_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held()
    monkeypatch.setattr(_RUN, held.run)
    commands = _commands(tmp_path, ManualClock())
    async with asyncio.TaskGroup() as group:
        group.create_task(_run(commands, "a1", "a"))
        await held.until_running("a1")
        group.create_task(_run(commands, "a2", "a"))
        group.create_task(_run(commands, "b1", "b"))
        await held.until_running("a1", "b1")
        group.create_task(_run(commands, "c1", "c"))
        held.running["b1"].set()
        await held.until_running("a1", "c1")
        held.running["a1"].set()
        await held.until_running("a2", "c1")
        for done in list(held.running.values()):
            done.set()
    assert len(set(held.folders)) == 3


async def test_a_command_that_waits_too_long_for_others_fails_with_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, clock = Held(), ManualClock()
    monkeypatch.setattr(_RUN, held.run)
    commands = _commands(tmp_path, clock, at_once=1)
    async with asyncio.TaskGroup() as group:
        group.create_task(_run(commands, "a1", "a"))
        await held.until_running("a1")
        waiting = group.create_task(_failure(_run(commands, "b1", "b")))
        await clock.advance(0)
        await clock.advance(130)
        assert "other commands are running" in await waiting
        held.running["a1"].set()


async def test_a_relative_data_folder_becomes_an_absolute_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held()
    monkeypatch.setattr(_RUN, held.run)
    monkeypatch.chdir(tmp_path)
    async with asyncio.TaskGroup() as group:
        group.create_task(_run(_commands(Path("data"), ManualClock()), "a", "a"))
        await held.until_running("a")
        held.running["a"].set()
    assert held.folders[0].startswith(f"{tmp_path}/data/")


async def test_a_sandbox_that_ends_without_a_report_is_a_result_and_one_that_does_not_start_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = _commands(tmp_path, ManualClock())

    async def broken(_request: SandboxRequest, _on_output: object) -> tuple[bytes, CommandEnd]:
        raise SandboxBroken("killed")

    async def full(_request: SandboxRequest, _on_output: object) -> tuple[bytes, CommandEnd]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_RUN, broken)
    assert (await _run(commands, "a", "a")).end.ending == "broken"
    monkeypatch.setattr(_RUN, full)
    assert "No space left on device" in await _failure(_run(commands, "a", "a"))


async def _failure(work: Coroutine[Any, Any, CommandResult]) -> str:
    with pytest.raises(ToolFailed) as failed:
        await work
    return str(failed.value)
