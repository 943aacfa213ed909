"""`python -m tests.support.heartbeat_child FOLDER LABEL:N BEGIN MINUTES`: a gateway with a heartbeat.

The clock begins BEGIN seconds after START and moves by the minutes. It prints one line of JSON: what the chat
got to read, and how often the model was called. The exit code is the crash label's, or 0.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from pipeline.domain.clock import ManualClock
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.channel import MemoryChannel
from tests.support.harness import GatewayHarness, open_gateway

START = 1_806_000_000.0
OWN = ("heartbeat.enabled=true", "heartbeat.channel=console", "heartbeat.chat=c1", "bot.time_zone=UTC")


async def main(folder: Path, crash_at: str, begin: float, steps: int) -> None:
    """Let time pass until all that has begun is over."""
    clock, channel = ManualClock(START + begin), MemoryChannel()
    llm = ScriptedLlm([ScriptedAnswer.of("It has changed.")] * 9)
    async with open_gateway(
        folder, *OWN, clock=clock, channel=channel, llm=llm, crash_at=crash_at or None
    ) as harness:
        for _ in range(steps):
            await settle(harness)
            await clock.advance(60)
        await settle(harness)
        sent = [reply.text for reply in channel.sent if reply.role == "notice"]
        sys.stdout.write(json.dumps({"sent": sent, "calls": len(llm.requests)}) + "\n")


async def settle(harness: GatewayHarness) -> None:
    """Return when nothing is checked, no heartbeat runs and all it has said is posted. Every look waits for
    the store's thread."""
    rests = 0
    while rests < 3:
        open_threads = await harness.store.open_threads()
        posting = await harness.store.jobs.next_ready("heartbeat-news")
        rests = 0 if open_threads or posting or not harness.gateway.heartbeats_rest else rests + 1


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])))
