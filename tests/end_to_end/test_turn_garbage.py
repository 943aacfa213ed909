"""A finished turn is freed at once: its objects refer to one another in no circle."""

from __future__ import annotations

import gc
from pathlib import Path

from tests.support.harness import GatewayHarness, open_gateway
from tools.trace_turn import PACKAGES


async def test_a_finished_turn_leaves_nothing_to_the_garbage_collector(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as running:
        await _answered(running, "first")
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            await _answered(running, "second")
            await _answered(running, "third")
            gc.collect()
            kinds = [type(one) for one in gc.garbage]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
    assert [kind.__name__ for kind in kinds if kind.__module__.partition(".")[0] in PACKAGES] == []


async def _answered(running: GatewayHarness, text: str) -> None:
    accepted = await running.channel.say(text)
    await running.channel.reply(accepted.message_id)
