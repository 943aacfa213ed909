"""Supervised background work: nothing fails in silence, nothing outlives its owner."""

from __future__ import annotations

import asyncio

import pytest

from gateway.runtime.tasks import Supervisor


async def test_a_failure_is_reported_by_name_and_the_others_continue(
    caplog: pytest.LogCaptureFixture,
) -> None:
    supervisor = Supervisor()
    gate = asyncio.Event()

    async def breaks() -> None:
        raise ValueError("boom")

    survivor = supervisor.spawn(gate.wait(), name="survivor")
    supervisor.spawn(breaks(), name="broken")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [vars(record)["task"] for record in caplog.records] == ["broken"]
    assert "boom" in caplog.text
    assert not survivor.done()
    gate.set()
    await supervisor.wait_idle()
    assert len(supervisor) == 0


async def test_close_cancels_and_waits_even_for_slow_endings() -> None:
    supervisor = Supervisor()
    ended: list[str] = []

    async def slow_ending() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("ended")

    supervisor.spawn(slow_ending(), name="slow")
    await asyncio.sleep(0)
    await supervisor.close()
    assert ended == ["ended"]


async def test_nothing_starts_after_close() -> None:
    supervisor = Supervisor()
    await supervisor.close()
    task = supervisor.spawn(asyncio.sleep(0), name="late")
    await supervisor.close()
    assert task.cancelled()
