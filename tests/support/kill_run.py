"""The driver of a kill run: chats that keep sending, and a gateway that is killed repeatedly.

Clients are careful: after the next connection they resend what was not acknowledged, under the same client_id
and in the same order. `kill_ledger` judges the result.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import asdict, dataclass
from pathlib import Path

from pipeline.domain.clock import SystemClock
from tests.support.gateway_process import GatewayProcess, slow_echo
from tests.support.kill_harness import Stage, final_lines, is_answered
from tests.support.kill_ledger import ChatHistory, Verdict, judge
from tests.support.store_file import StoredMessage, integrity, stored_messages
from tests.support.web_client import Disconnected, WebChat

WORD_DELAY_S = 0.01
HEARD = "hello"
SHORTEST_LIFE_S, LONGEST_LIFE_S = 0.1, 1.2
_WINDOW = 3
_MOST_PER_CHAT = 240  # a history shows 500 lines, two for each message
_SETTLE_S = 120.0
_RETRY_S = 0.02
_VOICE_NOTE = bytes(2_000)  # the scripted transcriber returns the same text for any audio
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class KillPlan:
    """How hard to try."""

    kills: int = 20
    chats: int = 8
    seed: int = 1
    duplicate_share: float = 0.05
    voice_share: float = 0.1
    attempts: int | None = None
    """`turn.max_attempts`; None for the default. 20 if kills hit a single message more often than the limit
    of deaths for a message that runs alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KillFigures:
    """The results of a run. `verdict` comes from the clients, the rest of the judgement from the file."""

    plan: KillPlan
    verdict: Verdict
    duplicates_sent: int
    duplicates_recognised: int
    turns_begun_again: int
    """Turns that a kill interrupted and the next process restarted, including the model call."""
    exit_code: int
    integrity: str
    stored: dict[str, StoredMessage]
    left_voice_files: int
    """Voice notes whose turns are done and whose files were not removed."""
    seconds: float

    def figures(self) -> dict[str, object]:
        """The numbers, for one line of JSON."""
        return {
            "kills": self.plan.kills,
            "seed": self.plan.seed,
            **asdict(self.verdict),
            "duplicates_sent": self.duplicates_sent,
            "turns_begun_again": self.turns_begun_again,
            "left_voice_files": self.left_voice_files,
            "integrity": self.integrity,
            "seconds": round(self.seconds, 1),
        }


async def run_kills(folder: Path, plan: KillPlan) -> KillFigures:
    """Run `plan` with everything under `folder`; takes about 1.5 s for each kill."""
    began = _CLOCK.monotonic()
    own = () if plan.attempts is None else (f"turn.max_attempts={plan.attempts}",)
    overrides = (*slow_echo(WORD_DELAY_S), *own, 'log.level="warning"')
    async with GatewayProcess(folder, overrides=overrides) as gateway:
        stage = Stage()
        chats: list[Talker] = []
        try:
            async with asyncio.timeout(None) as patience, asyncio.TaskGroup() as group:
                for number in range(plan.chats):
                    group.create_task(talk_on(number, plan, stage, chats))
                await _kill_again_and_again(gateway, stage, plan)
                stage.stopping = True
                patience.reschedule(asyncio.get_running_loop().time() + _SETTLE_S)
        except TimeoutError:
            pass  # messages that are still unanswered are lost, and the judge counts them
        histories = [await chat.history(gateway) for chat in chats]
        exit_code = await gateway.stop()
        stored = stored_messages(gateway.store_path)
        return KillFigures(
            plan=plan,
            verdict=judge(histories),
            duplicates_sent=sum(chat.duplicates_sent for chat in chats),
            duplicates_recognised=sum(history.seen.duplicates for history in histories),
            turns_begun_again=sum(message.attempts - 1 for message in stored.values()),
            exit_code=exit_code,
            integrity=integrity(gateway.store_path),
            stored=stored,
            left_voice_files=sum(path.is_file() for path in (gateway.data_dir / "media").glob("*")),
            seconds=_CLOCK.monotonic() - began,
        )


async def _kill_again_and_again(gateway: GatewayProcess, stage: Stage, plan: KillPlan) -> None:
    chance = random.Random(plan.seed)
    for _ in range(plan.kills):
        await stage.raise_curtain(gateway)
        await _CLOCK.sleep(chance.uniform(SHORTEST_LIFE_S, LONGEST_LIFE_S))
        await stage.kill(gateway)
    await stage.raise_curtain(gateway)


async def talk_on(number: int, plan: KillPlan, stage: Stage, chats: list[Talker]) -> None:
    """Talk in one chat after the other: a full chat is replaced by a new one."""
    while not stage.stopping:
        talker = Talker(f"{number}-{len(chats)}", plan, stage)
        chats.append(talker)
        await talker.run()


class Talker:
    """One chat: keeps a few messages in flight, repeats some, and starts over when the socket breaks."""

    def __init__(self, name: str, plan: KillPlan, stage: Stage) -> None:
        self._name = name
        self._plan = plan
        self._stage = stage
        self._chance = random.Random(f"{plan.seed}/{name}")
        self.chat = WebChat()
        self.texts: dict[str, str] = {}
        """client_id -> text; empty for a voice note."""
        self._open: list[str] = []
        self.duplicates_sent = 0

    async def run(self) -> None:
        """Talk until the stage is cleared or the chat is full, and everything sent is answered."""
        async with self.chat as chat:
            while True:
                await self._stage.up.wait()
                try:
                    await chat.connect(self._stage.url, self._stage.token)
                    await self._repeat_unacknowledged()
                    if await self._talk():
                        return
                except Disconnected:
                    await _CLOCK.sleep(_RETRY_S)

    async def history(self, gateway: GatewayProcess) -> ChatHistory:
        """What this chat's client received, and what a new one is shown."""
        return ChatHistory(
            sent=self.texts,
            expected={client_id: f"You said: {text or HEARD}" for client_id, text in self.texts.items()},
            seen=self.chat.seen,
            final=await final_lines(self.chat.chat, gateway),
        )

    async def _talk(self) -> bool:
        """Send and read on one socket; True when there is nothing left to say or to wait for."""
        while True:
            self._open = [client_id for client_id in self._open if not is_answered(self.chat.seen, client_id)]
            finished = self._stage.stopping or len(self.texts) >= _MOST_PER_CHAT
            if finished and not self._open:
                return True
            while not finished and len(self._open) < _WINDOW:
                await self._say_something_new()
            frame = await self.chat.receive()
            if frame["type"] == "problem":
                raise Disconnected(None, frame["code"])

    async def _say_something_new(self) -> None:
        client_id = f"k{self._name}-{len(self.texts)}"
        spoken = self._chance.random() < self._plan.voice_share
        words = " ".join("word" for _ in range(self._chance.randint(1, 12)))
        self.texts[client_id] = "" if spoken else f"{client_id} {words}"
        self._open.append(client_id)
        await self._send(client_id)
        if self._by_chance():
            await self._repeat(client_id)

    async def _repeat_unacknowledged(self) -> None:
        accepted = self.chat.seen.accepted
        for client_id in self._open:
            if client_id not in accepted:
                await self._send(client_id)
            elif self._by_chance():
                await self._repeat(client_id)

    async def _repeat(self, client_id: str) -> None:
        self.duplicates_sent += 1
        await self._send(client_id)

    async def _send(self, client_id: str) -> None:
        text = self.texts[client_id]
        if text:
            await self.chat.send_text(client_id, text)
        else:
            await self.chat.send_voice(client_id, _VOICE_NOTE, mime="audio/ogg")

    def _by_chance(self) -> bool:
        return self._chance.random() < self._plan.duplicate_share
