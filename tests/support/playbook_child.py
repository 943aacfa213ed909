"""`python -m tests.support.playbook_child FOLDER LABEL:N`: run the onboarding playbook, crash at the label.

The exit code is the crash label's, or 0 if the label was not reached.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pipeline.domain.clock import ManualClock
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.gate_graph import answer_to
from tests.support.harness import THREAD, open_gateway

ONBOARDING = 'agent.graph="examples/workflows/onboarding.playbook.json"'
DAY = 86_400.0
PLAN = "Day 1: look.\nDay 2: ride.\nDay 3: rest."
HELP = "I help you. Where are you?"


def scripted(*answers: str) -> ScriptedLlm:
    """A model that gives these answers, in this order."""
    return ScriptedLlm([ScriptedAnswer.of(answer) for answer in answers])


async def main(folder: Path, crash_at: str) -> None:
    """Begin, answer, wait a day, answer, wait two days."""
    llm, clock = scripted(PLAN, "MET", HELP), ManualClock()
    async with open_gateway(folder, ONBOARDING, llm=llm, crash_at=crash_at, clock=clock) as harness:
        channel = harness.channel
        for text in ("I am new here", "Ada"):
            accepted = await channel.say(text)
            await channel.reply(accepted.message_id)
        await clock.advance(DAY + 1)
        await channel.until(lambda: len(channel.sent) == 3)
        (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
        await channel.bring(answer_to(question.id, "no"))
        await channel.reply("m_answer")
        await clock.advance(2 * DAY + 1)
        await channel.until(lambda: len(channel.sent) == 5)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
