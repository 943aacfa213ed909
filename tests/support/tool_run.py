"""The driver of a kill run over tools: chats that use tools, and a gateway that is killed meanwhile.

A kill comes some frames after each start, so that it always interrupts a turn, even on a slow machine.
Clients behave as in `kill_run`, and allow every question.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pipeline.domain.clock import SystemClock
from tests.support.gateway_process import GatewayProcess
from tests.support.kill_harness import Stage, final_lines, is_answered
from tests.support.kill_ledger import ChatHistory, Verdict, judge
from tests.support.openai_server import FakeOpenAiServer
from tests.support.store_file import StoredMessage, integrity, open_runs, stored_messages
from tests.support.tool_talk import (
    ASKED,
    Kind,
    executions,
    outcome,
    questions,
    think,
    tool_settings,
    wish,
)
from tests.support.web_client import Disconnected, Frame, WebChat

SHORTEST_LIFE, LONGEST_LIFE = 4, 44
"""Frames that the clients receive before a kill; a message of this run brings about twenty."""
_LATER_S = 0.01
"""Maximum random delay of a kill, so that it does not always directly follow a frame."""
_WINDOW = 2
_SETTLE_S = 60.0
_RETRY_S = 0.02
_KINDS: tuple[Kind, ...] = ("remind", "file", "remind", "sum", "remind", "line")
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPlan:
    """How hard to try."""

    kills: int = 10
    chats: int = 2
    messages: int = 24
    """At least; the chats send messages as long as kills remain."""
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFigures:
    """The results of a run: `verdict` and `reported` from the clients, the rest from the disk."""

    plan: ToolPlan
    verdict: Verdict
    reported: dict[str, str]
    """The outcome of each wish according to its answer, by name: `done`, `unknown`, or else the whole
    answer."""
    kinds: dict[str, Kind]
    """Which tool each name was for."""
    executed: Counter[str]
    questions: list[tuple[str, str | None]]
    asked: list[str]
    """The message of each name that a person had to be asked for."""
    may_be_asked: list[str]
    """The messages whose tool asks a person only after the chat has read foreign words."""
    asked_twice: int
    """Messages whose clients were shown two different questions."""
    turns_begun_again: int
    open: list[str]
    exit_code: int
    integrity: str
    stored: dict[str, StoredMessage]
    seconds: float

    def figures(self) -> dict[str, object]:
        """The numbers, for one line of JSON."""
        return {
            "kills": self.plan.kills,
            "seed": self.plan.seed,
            **asdict(self.verdict),
            "tools_done": sum(self.executed.values()),
            "done_twice": sum(count > 1 for count in self.executed.values()),
            "reported_unknown": sum(said == "unknown" for said in self.reported.values()),
            "questions": len(self.questions),
            "asked_twice": self.asked_twice,
            "turns_begun_again": self.turns_begun_again,
            "left_open": len(self.open),
            "integrity": self.integrity,
            "seconds": round(self.seconds, 1),
        }


async def run_tool_kills(folder: Path, plan: ToolPlan) -> ToolFigures:
    """Run `plan` with everything under `folder`; takes about 2 s for each kill."""
    began = _CLOCK.monotonic()
    async with (
        FakeOpenAiServer(brain=think) as model,
        GatewayProcess(folder, overrides=tool_settings(model.api_base, folder)) as gateway,
    ):
        stage = _Stage()
        chats = [_Wisher(number, plan, stage) for number in range(plan.chats)]
        try:
            async with asyncio.timeout(None) as patience, asyncio.TaskGroup() as group:
                for chat in chats:
                    group.create_task(chat.run())
                await _kill_again_and_again(gateway, stage, plan)
                stage.stopping = True
                patience.reschedule(asyncio.get_running_loop().time() + _SETTLE_S)
        except TimeoutError:
            pass  # messages that are still unanswered are lost, and the judge counts them
        histories = [await chat.history(gateway) for chat in chats]
        exit_code = await gateway.stop()
        stored = stored_messages(gateway.store_path)
        kinds = {name: kind for chat in chats for name, kind in chat.kinds.items()}
        return ToolFigures(
            plan=plan,
            verdict=judge(histories),
            reported={
                name: outcome(kinds[name], name, said)
                for one in histories
                for name, said in one.expected.items()
            },
            kinds=kinds,
            executed=executions(folder, gateway.store_path),
            questions=questions(gateway.store_path),
            asked=[chat.message_of(name) for chat in chats for name in chat.kinds if kinds[name] in ASKED],
            may_be_asked=[
                chat.message_of(name) for chat in chats for name in chat.kinds if kinds[name] == "remind"
            ],
            asked_twice=sum(len(shown) > 1 for chat in chats for shown in chat.shown.values()),
            turns_begun_again=sum(message.attempts - 1 for message in stored.values()),
            open=open_runs(gateway.store_path),
            exit_code=exit_code,
            integrity=integrity(gateway.store_path),
            stored=stored,
            seconds=_CLOCK.monotonic() - began,
        )


class _Stage(Stage):
    """Counts the frames that its clients received."""

    def __init__(self) -> None:
        super().__init__()
        self.frames_left = 0
        self.enough = asyncio.Event()

    def note_frame(self) -> None:
        """A client has received one."""
        self.frames_left -= 1
        if self.frames_left <= 0:
            self.enough.set()


async def _kill_again_and_again(gateway: GatewayProcess, stage: _Stage, plan: ToolPlan) -> None:
    chance = random.Random(plan.seed)
    for _ in range(plan.kills):
        stage.frames_left = chance.randint(SHORTEST_LIFE, LONGEST_LIFE)
        stage.enough.clear()
        await stage.raise_curtain(gateway)
        await stage.enough.wait()
        await _CLOCK.sleep(chance.uniform(0, _LATER_S))
        await stage.kill(gateway)
    await stage.raise_curtain(gateway)


class _Wisher:
    """One chat: wishes for one thing after the other, allows what is asked, and starts over when the socket
    breaks."""

    def __init__(self, number: int, plan: ToolPlan, stage: _Stage) -> None:
        self._number = number
        self._plan = plan
        self._stage = stage
        self._chat = WebChat()
        self._open: list[str] = []
        self.kinds: dict[str, Kind] = {}
        """name -> the tool; a message's name is its client_id."""
        self.shown: dict[str, set[str]] = {}
        """message_id -> the questions that were asked about it."""

    async def run(self) -> None:
        """Talk until the stage is cleared and everything sent is answered."""
        async with self._chat as chat:
            while True:
                await self._stage.up.wait()
                try:
                    for frame in await chat.connect(self._stage.url, self._stage.token):
                        await self._note(frame)
                    for name in [name for name in self._open if name not in chat.seen.accepted]:
                        await chat.send_text(name, wish(self.kinds[name], name))
                    if await self._talk():
                        return
                except Disconnected:
                    await _CLOCK.sleep(_RETRY_S)

    def message_of(self, name: str) -> str:
        """The message_id of a wish; empty if it was not accepted."""
        return self._chat.seen.accepted.get(name, "")

    async def history(self, gateway: GatewayProcess) -> ChatHistory:
        """What this chat's client received, and what a new one is shown. An answer quotes the tool's result,
        such as a reminder's id, so the final text counts as expected; `reported` shows whether it is
        right."""
        final = await final_lines(self._chat.chat, gateway)
        shown = {line.message_id: line.text for line in final if line.role == "assistant"}
        return ChatHistory(
            sent={name: wish(kind, name) for name, kind in self.kinds.items()},
            expected={name: shown.get(self.message_of(name), "") for name in self.kinds},
            # Answers to questions are accepted as well, and get no answer.
            seen=replace(
                self._chat.seen, accepted={name: self.message_of(name) for name in self._accepted()}
            ),
            final=final,
        )

    def _accepted(self) -> list[str]:
        """The names of the wishes that were accepted, in that order."""
        return [name for name in self._chat.seen.accepted if name in self.kinds]

    async def _talk(self) -> bool:
        """Wish and read on one socket; True when there is nothing left to say or to wait for."""
        while True:
            self._open = [name for name in self._open if not is_answered(self._chat.seen, name)]
            said_all = len(self.kinds) >= self._plan.messages // self._plan.chats
            finished = self._stage.stopping and said_all
            if finished and not self._open:
                return True
            while not finished and len(self._open) < _WINDOW:
                await self._wish_for_something_new()
            await self._note(await self._chat.receive())

    async def _wish_for_something_new(self) -> None:
        name = f"w{self._number}-{len(self.kinds)}"
        self.kinds[name] = _KINDS[(len(self.kinds) + self._number) % len(_KINDS)]
        self._open.append(name)
        await self._chat.send_text(name, wish(self.kinds[name], name))

    async def _note(self, frame: Frame) -> None:
        self._stage.note_frame()
        if frame["type"] == "event" and frame["event"]["type"] == "approval_required":
            question = frame["event"]["interaction_id"]
            self.shown.setdefault(frame["event"]["message_id"], set()).add(question)
            # A question that is shown again may have been answered: the gateway says so then.
            await self._chat.send_approval(f"yes-{question}", question, "Allow")
