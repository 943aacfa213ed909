"""`python -m tests.support.stopped_heartbeat_child FOLDER LABEL:N BEGIN`: a heartbeat that is stopped.

The clock begins BEGIN seconds after START, shortly before the heartbeat. A gateway that is to crash lets it
begin, and has it stopped while its model works; one that is not lets an hour pass, in which no other is due.
It prints one line of JSON: what the chat got to read, the lines in the log, and how often the model was
called. The exit code is the crash label's, or 0.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from pipeline.domain.clock import ManualClock
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.channel import MemoryChannel
from tests.support.harness import open_gateway
from tests.support.heartbeat_child import OWN, START, settle
from tests.support.heartbeats import HOUR, MINUTE, pass_time, until

LINE = "- `0 19 * * *` -- look around\n"
_BEFORE_S = 25 * MINUTE
"""From START to the heartbeat, and some more."""
_PATIENT = "llm.timeout_s=3600"


async def main(folder: Path, crash_at: str, begin: float) -> None:
    """Stop the heartbeat, or see what follows."""
    clock, channel = ManualClock(START + begin), MemoryChannel()
    never = ScriptedAnswer(chunks=("Never.",), gate=asyncio.Event())
    llm = ScriptedLlm([never] if crash_at else [ScriptedAnswer.of("It is said all the same.")] * 9)
    async with open_gateway(
        folder, *OWN, _PATIENT, clock=clock, channel=channel, llm=llm, crash_at=crash_at or None
    ) as harness:
        if crash_at:
            await settle(harness)
            await clock.advance(_BEFORE_S)
            await until(harness, lambda: len(llm.requests) == 1)
        # The same delivery again, as a platform makes it that got no acknowledgement.
        await channel.say("/stop", native_id="the stop")
        await settle(harness)
        await pass_time(harness, clock, HOUR)
        lines = [str(record.body["text"]) for record in await harness.records("notice")]
        sent = [reply.text for reply in channel.sent]
        sys.stdout.write(json.dumps({"sent": sent, "lines": lines, "calls": len(llm.requests)}) + "\n")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
