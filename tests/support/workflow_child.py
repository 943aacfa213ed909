"""`python -m tests.support.workflow_child FOLDER LABEL:N`: run the triage workflow and crash at the label.

The exit code is the crash label's, or 0 if the label was not reached.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.gate_graph import answer_to
from tests.support.harness import THREAD, open_gateway

TRIAGE = 'agent.graph="examples/workflows/triage.workflow.json"'
DRAFT = "Dear Ann, we pay you back. Please send the receipt."


def triage_model(*answers: str) -> ScriptedLlm:
    """A model that gives these answers, in this order."""
    return ScriptedLlm([ScriptedAnswer.of(answer) for answer in answers])


async def main(folder: Path, crash_at: str) -> None:
    """Ask, approve, and wait for the end of the turn."""
    llm = triage_model("refund", DRAFT)
    async with open_gateway(folder, TRIAGE, llm=llm, crash_at=crash_at) as harness:
        asked = await harness.channel.say("I want my money back")
        await harness.channel.reply(asked.message_id)
        pending = await harness.store.pending_interactions(THREAD, now=0.0)
        await harness.channel.bring(answer_to(pending[0].id, "approve"))
        await harness.channel.reply("m_answer")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
