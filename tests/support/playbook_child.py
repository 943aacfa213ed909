"""`python -m tests.support.playbook_child FOLDER LABEL:N`: run the onboarding playbook, crash at the label.

The exit code is the crash label's, or 0 if the label was not reached.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pipeline.domain.clock import ManualClock
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.nodes.templates import marked
from tests.pipeline.workflows.documents import Echo
from tests.support.gate_graph import answer_to
from tests.support.harness import THREAD, GatewayHarness, open_gateway

ONBOARDING = 'agent.graph="examples/workflows/onboarding.playbook.json"'
DAY = 86_400.0
PLAN = "Day 1: look.\nDay 2: ride.\nDay 3: rest."
HELP = "I help you. Where are you?"
REPLIES = (
    "Welcome to the bicycle club! I help you through your first three days.\n\nWhat may I call you?",
    f"{PLAN}\n\nI ask you tomorrow how it goes.",
    "Ada, did you find everything?\n(yes / no)",
    f"{HELP}\n\nI write again in two days.",
    "Your first three days are over, Ada. See you on Saturday at 9!",
)
"""What the bot says to a person who answers `Ada` and `no`."""


def scripted(*answers: str) -> ScriptedLlm:
    """A model that gives these answers, in this order."""
    return ScriptedLlm([ScriptedAnswer.of(answer) for answer in answers])


def onboarding_model() -> Echo:
    """A model that answers by its task, in whatever order the tasks come."""
    plan = "Write a plan for their first three days in the club, one line for each day."
    judged = f"It succeeds if: There is one line for each of three days.\n\nThe result:\n\n{marked(PLAN)}"
    helps = "Ada did not find everything. This was the plan:\n\n" + PLAN + "\n\nOffer help in two sentences."
    asked = f"Ada is new and wrote: I am new here\n\n{plan}"
    return Echo({asked: PLAN, judged: "MET", helps: HELP})


async def to_the_end(harness: GatewayHarness, clock: ManualClock) -> None:
    """Answer every question, and let the time of every wait come, until all has been said."""
    answered: set[str] = set()
    channel = harness.channel
    while True:
        before = len(channel.sent)
        said = [record.body["text"] for record in await harness.records("assistant")]
        if REPLIES[-1] in said:
            return
        pending = await harness.store.pending_interactions(THREAD, now=0.0)
        new = [one for one in pending if one.id not in answered]
        if not new:
            await channel.until(lambda: len(channel.sent) > before)  # noqa: B023 - used at once
        else:
            answered.add(new[0].id)
            if new[0].asks == "words":
                await channel.say("Ada")
            elif new[0].asks == "choice":
                await channel.bring(answer_to(new[0].id, "no", name=f"answer{len(answered)}"))
            else:
                await clock.advance(max(0.0, new[0].expires_at - clock.now()) + 1)


async def main(folder: Path, crash_at: str) -> None:
    """Begin, answer, wait a day, answer, wait two days."""
    clock = ManualClock()
    async with open_gateway(
        folder, ONBOARDING, model=onboarding_model(), crash_at=crash_at, clock=clock
    ) as harness:
        await harness.channel.say("I am new here")
        await to_the_end(harness, clock)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
