"""`python -m tests.support.heartbeat_child FOLDER LABEL:N BEGIN`: a gateway with a heartbeat.

The clock begins BEGIN seconds after START and moves by some minutes. It prints one line of JSON: what the
chat got to read, and how often the model was called. The exit code is the crash label's, or 0.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from pipeline.domain.clock import ManualClock
from pipeline.domain.ids import identity_key
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.tools.confine import person_folder
from tests.support.channel import MemoryChannel
from tests.support.harness import GatewayHarness, open_gateway

START = 1_806_000_000.0
_MINUTES = 6
_CHANGED_AT = 3
OWN = ("heartbeat.enabled=true", "heartbeat.channel=console", "heartbeat.chat=c1", "bot.time_zone=UTC")


async def main(folder: Path, crash_at: str, begin: float) -> None:
    """Let time pass and, if it is to crash, change the watched file meanwhile."""
    clock, channel = ManualClock(START + begin), MemoryChannel()
    llm = ScriptedLlm([ScriptedAnswer.of("It has changed.")] * 9)
    async with open_gateway(
        folder, *OWN, clock=clock, channel=channel, llm=llm, crash_at=crash_at or None
    ) as harness:
        for minute in range(_MINUTES):
            await settle(harness)
            if crash_at and minute == _CHANGED_AT:
                with watched_file(folder).open("a", encoding="utf-8") as file:
                    file.write("tea\n")
            await clock.advance(60)
        await settle(harness)
        sent = [reply.text for reply in channel.sent if reply.role == "notice"]
        sys.stdout.write(json.dumps({"sent": sent, "calls": len(llm.requests)}) + "\n")


def watched_file(folder: Path) -> Path:
    """The file that the person's document has watched."""
    owner = identity_key("console", "local", "owner")
    return person_folder(folder / "workspace", owner) / "files" / "list.txt"


async def settle(harness: GatewayHarness) -> None:
    """Return when nothing is checked, no heartbeat runs and all it has said is posted. Every look waits for
    the store's thread."""
    rests = 0
    while rests < 3:
        open_threads = await harness.store.open_threads()
        posting = await harness.store.jobs.next_ready("heartbeat-news") or await harness.store.outbox_open()
        rests = 0 if open_threads or posting or not harness.gateway.heartbeats_rest else rests + 1


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
