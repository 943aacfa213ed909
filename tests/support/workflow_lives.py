"""`python -m tests.support.workflow_lives FOLDER`: a gateway with runs of one workflow, made to be killed.

The process begins the runs that no earlier one began, answers what is open, notes in a ledger what was
acknowledged, and ends when every run has.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any, Final

from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import SystemClock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author, SessionCommand, button_handle
from pipeline.llm.client import LlmFinished, LlmItem, LlmRequest, TextDelta, ToolAsked
from pipeline.runtime.scope import TurnScope
from pipeline.tools.registry import FixedGroup
from pipeline.tools.tool import ToolOutput
from tests.pipeline.workflows.documents import agent, approval, document, start, way
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.killed_graph import Ledger
from tests.support.tool_gate import tool

RUNS: Final = 20
BRANCHES: Final = ("a", "b")
LEDGER: Final = "ledger"
_PAY = {"tools": {"groups": ["pay"]}}
SOURCE: Final = document(
    start(),
    *(agent(f"draft_{one}", systemPrompt="You draft.") for one in BRANCHES),
    *(approval(f"ok_{one}", prompt=f"{one}?") for one in BRANCHES),
    *(agent(f"pay_{one}", userPrompt=f"{{{{MESSAGE}}}} {one}", **_PAY) for one in BRANCHES),
    routes=[
        route
        for one in BRANCHES
        for route in (
            way(f"start > draft_{one}"),
            way(f"draft_{one} > ok_{one}"),
            way(f"ok_{one} > pay_{one}", "approve"),
        )
    ],
)
"""Two branches at the same time; in each a draft, an approval, and an agent whose tool has an effect."""
_AUTHOR = Author(id="owner")
_LOOK_S = 0.02
_CLOCK = SystemClock()


def thread_of(number: int) -> ThreadKey:
    """The chat of a run."""
    return ThreadKey(channel="console", account="local", chat=f"c{number}")


def result(number: int) -> set[str]:
    """What a run says at its end, one part for each branch."""
    return {f"paid run-{number} {one}" for one in BRANCHES}


class PayingModel:
    """Answers from the request alone, so that a repeated call gets the same answer. Notes each call."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def stream(self, request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
        """See `LlmClient.stream`."""
        self._ledger.note("model")
        said = next(one.content for one in reversed(request.messages) if one.role == "user")
        if not request.tools:
            yield TextDelta(text=f"draft of {said}")
        elif request.messages[-1].role == "tool":
            yield TextDelta(text=f"paid {said}")
        else:
            yield ToolAsked(call=ToolCall(id="p", name="pay", arguments=json.dumps({"text": said})))
        yield LlmFinished(finish_reason="stop")

    async def warm_up(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""

    def status(self) -> str:
        """See `LlmClient.status`."""
        return "ready"


async def live(folder: Path) -> None:
    """One life: until all runs have ended."""
    ledger = Ledger(folder / LEDGER)
    path = folder / "flow.json"
    path.write_text(json.dumps(SOURCE), "utf-8")

    async def pay(arguments: Mapping[str, Any], _scope: TurnScope) -> ToolOutput:
        ledger.note("paid", *str(arguments["text"]).split())
        return ToolOutput(text="paid")

    group = FixedGroup(name="pay", description="pay", fixed=(tool("pay", pay, group="pay", own_only=True),))
    settings = (
        f'agents.flow.graph="{path}"',
        'routes.1.agent="default"',
        'routes.1.also=["flow"]',
        # Kills hit the last runs again and again.
        "turn.max_attempts=20",
        'log.level="error"',
    )
    model = PayingModel(ledger)
    async with (
        open_gateway(folder, *settings, model=model, tools=(group,)) as harness,
        asyncio.TaskGroup() as runs,
    ):
        for number in range(RUNS):
            runs.create_task(_drive(harness, ledger, number))


async def _drive(harness: GatewayHarness, ledger: Ledger, number: int) -> None:
    """Begin a run, unless that was acknowledged before, and answer its questions, until it has ended."""
    place = thread_of(number)
    thread = place.encode()
    command = SessionCommand(
        message_id=f"m_{number}",
        native_id=f"n_{number}",
        thread=place,
        author=_AUTHOR,
        received_at=_CLOCK.now(),
        name="run",
        argument=f"flow run-{number}",
    )
    if (await harness.channel.bring(command)).status == "accepted":
        ledger.note("asked", number)
    while True:
        for question in await harness.store.pending_interactions(thread, now=0.0):
            if (await harness.channel.bring(_answer(place, question.id))).status == "accepted":
                ledger.note("answered", number, question.id)
        if await _is_over(harness, thread):
            return
        await _CLOCK.sleep(_LOOK_S)


async def _is_over(harness: GatewayHarness, thread: str) -> bool:
    if await harness.store.open_entries(thread) or await harness.store.pending_interactions(thread, now=0.0):
        return False
    return bool(await harness.store.read_log(thread, kinds=("assistant", "error")))


def _answer(place: ThreadKey, question: str) -> ApprovalReply:
    identity = f"answer-{button_handle(question)}"
    return ApprovalReply(
        message_id=f"m_{identity}",
        native_id=identity,
        thread=place,
        author=_AUTHOR,
        received_at=_CLOCK.now(),
        interaction_id=question,
        choice="approve",
    )


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1])))
