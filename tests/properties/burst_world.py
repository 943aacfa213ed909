"""A gateway on virtual time in which people write in bursts, and which dies at random writes.

Every chat follows a random schedule of texts, voice notes, edits, stops and presses. `judge` then reads the
store: each message is part of exactly one turn, in order, and the model was asked about it once.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adapters.channel import Acceptance
from gateway.runtime.tasks import Supervisor
from gateway.storage.ports import Record
from pipeline.domain.chat import ChatMessage, ToolCall, ToolDefinition
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError
from pipeline.domain.events import ApprovalRequired
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import (
    ApprovalReply,
    Author,
    Inbound,
    InboundMessage,
    MediaRef,
    SessionCommand,
    button_handle,
)
from pipeline.llm.client import LlmFinished, LlmItem, LlmRequest, TextDelta, ToolAsked
from pipeline.runtime.scope import TurnScope
from pipeline.tools.registry import FixedGroup
from pipeline.tools.tool import Tool, ToolOutput, tool_schema
from tests.support.channel import MemoryChannel
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.mortal_store import MortalStore
from voice.transcriber import OnProgress, Recording
from voice.transcript import Transcript
from voice.transcription.scripted_transcriber import ScriptedTranscriber

STEP_S = 0.1
_LONGEST_S = 400.0
_WORD = re.compile(r"\bw\d+x\d+(?:e\d+)?\b")
_TOOL = "please act"


class SlowTranscriber(ScriptedTranscriber):
    """Writes down recordings whose bytes are their words, after some seconds."""

    def __init__(self, clock: ManualClock, rng: random.Random) -> None:
        super().__init__()
        self._clock = clock
        self._rng = rng

    async def transcribe(
        self,
        recording: Recording,
        *,
        on_progress: OnProgress | None = None,
    ) -> Transcript:
        await self._clock.sleep(self._rng.choice((0.0, 0.4, 2.0, 5.0)))
        return self._spoken(recording.data.decode(), "en")


class Model:
    """Answers with the words that it was asked about and that no earlier answer of the chat has."""

    def __init__(self, clock: ManualClock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng

    async def stream(self, request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
        """See `LlmClient.stream`."""
        await self._clock.sleep(self._rng.choice((0.0, 0.3, 0.9, 2.0)))
        done = _calls_in(_newest(request.messages))
        if done is not None and done < 2:
            name, arguments = (("load_tools", {"groups": ["acts"]}), ("act", {"number": done}))[done]
            call = ToolCall(id=f"c{len(request.messages)}", name=name, arguments=json.dumps(arguments))
            yield ToolAsked(call=call)
        else:
            for part in (f"said: {' '.join(new_words(request.messages))} ", "and no more."):
                yield TextDelta(text=part)
                await self._clock.sleep(self._rng.choice((0.0, 0.2, 1.5)))
        yield LlmFinished(finish_reason="stop")

    async def warm_up(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""

    def status(self) -> str:
        """See `LlmClient.status`."""
        return "ready"


def _newest(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """The messages of the present turn."""
    ends = [at for at, one in enumerate(messages) if one.role == "assistant" and not one.tool_calls]
    return messages[ends[-1] + 1 :] if ends else messages[1:]


def _calls_in(turn: Sequence[ChatMessage]) -> int | None:
    """How many calls the turn has made; None if it asks for none."""
    asked = turn and _TOOL in turn[0].content
    return sum(one.role == "tool" for one in turn) if asked else None


def new_words(messages: Sequence[ChatMessage]) -> list[str]:
    """The marked words of people that no answer repeats, in order."""
    answered = {word for one in messages if one.role == "assistant" for word in _WORD.findall(one.content)}
    asked = [word for one in messages if one.role == "user" for word in _WORD.findall(one.content)]
    return [word for word in asked if word not in answered]


async def _act(_arguments: Mapping[str, Any], _scope: TurnScope) -> ToolOutput:
    return ToolOutput(text="done")


def acts() -> FixedGroup:
    """A tool that needs the person's approval."""
    definition = ToolDefinition(
        name="act", description="Acts.", parameters=tool_schema({"number": {"type": "integer"}})
    )
    tool = Tool(definition=definition, group="acts", run=_act)
    return FixedGroup(name="acts", description="acts", fixed=(tool,))


@dataclass(slots=True, kw_only=True)
class Chat:
    """One chat and what its people have sent so far."""

    number: int
    due: list[tuple[float, Inbound]]
    accepted: dict[str, int] = field(default_factory=dict)
    """The number of each accepted item in the order of acceptance, by its id."""
    words: dict[str, str] = field(default_factory=dict)
    """The marked word of each message, by its id."""

    @property
    def thread(self) -> str:
        """The key of its thread."""
        return ThreadKey(channel="console", account="local", chat=f"c{self.number}").encode()


def chat(number: int, rng: random.Random, start: float, media: dict[str, bytes]) -> Chat:
    """A chat with a random schedule."""
    made = Chat(number=number, due=[])
    key, author, at = ThreadKey.decode(made.thread), Author(id="owner"), start + rng.random()
    for index in range(rng.randint(2, 6)):
        name, word = f"{number}-{index}", f"w{number}x{index}"
        common: dict[str, Any] = {"thread": key, "author": author, "received_at": at}
        first = ("text", "tool", "tool", "voice", "edit")
        kind = rng.choice(first if index == 0 else ("text",) * 5 + ("tool", "voice", "voice", "edit", "stop"))
        if kind == "stop":
            command = SessionCommand(message_id=f"m{name}", native_id=name, name="stop", **common)
            made.due.append((at, command))
        elif kind == "voice":
            media[name] = word.encode()
            ref = MediaRef(channel="console", handle=name, mime="audio/ogg", size=len(media[name]))
            made.due.append((at, InboundMessage(message_id=f"m{name}", native_id=name, voice=ref, **common)))
        else:
            text = f"{word} {_TOOL}" if kind == "tool" else word
            made.due.append(
                (at, InboundMessage(message_id=f"m{name}", native_id=name, place=name, text=text, **common))
            )
        made.words[f"m{name}"] = word
        if kind == "edit":
            later = at + rng.choice((0.1, 0.6, 3.0))
            common["received_at"] = later
            made.words[f"m{name}e"] = f"{word}e1"
            edited = InboundMessage(
                message_id=f"m{name}e",
                native_id=f"{name}e",
                place=name,
                text=f"{word}e1",
                edited=True,
                **common,
            )
            made.due.append((later, edited))
        at += rng.choice((0.05, 0.5, 1.0, 1.19, 1.3, 4.0, 9.0))
    made.due.sort(key=lambda one: one[0])
    return made


class World:
    """Runs the schedules of several chats through the lives of one gateway."""

    def __init__(self, folder: Path, rng: random.Random, chats: int, *overrides: str) -> None:
        self._folder = folder
        self._rng = rng
        self._overrides = overrides
        self.clock = ManualClock()
        self.store = MortalStore(lambda: rng.random() < 0.5)
        self._media: dict[str, bytes] = {}
        self._asked: list[ApprovalRequired] = []
        self._pressed: set[str] = set()
        self.chats = [chat(number, rng, self.clock.now(), self._media) for number in range(chats)]
        self.deaths = 0

    async def run(self, deaths: int) -> None:
        """Live until every message has been sent and finished; the gateway dies `deaths` times."""
        while True:
            self.store.left = self._rng.randint(0, 60) if self.deaths < deaths else -1
            channel = MemoryChannel()
            channel.media = self._media
            async with open_gateway(
                self._folder,
                *self._overrides,
                channel=channel,
                store=self.store,
                model=Model(self.clock, self._rng),
                transcriber=SlowTranscriber(self.clock, self._rng),
                clock=self.clock,
                tools=(acts(),),
                drain_s=0.0,
            ) as harness:
                await self._live(harness)
            if not self.store.died:
                return
            self.deaths += 1
            self.store.revive()

    async def _live(self, harness: GatewayHarness) -> None:
        until = self.clock.now() + _LONGEST_S
        sending: set[asyncio.Task[None]] = set()
        people = Supervisor()
        while not self.store.died and (sending or any(one.due for one in self.chats) or await self._open()):
            for one in self.chats:
                busy = any(task.get_name() == one.thread for task in sending)
                if one.due and one.due[0][0] <= self.clock.now() and not busy:
                    task = people.spawn(self._send(harness.channel, one), name=one.thread)
                    sending.add(task)
                    task.add_done_callback(sending.discard)
            self._press(harness.channel, sending, people)
            await self.clock.advance(STEP_S if any(one.due for one in self.chats) else 5 * STEP_S)
            assert self.clock.now() < until, "something never ends"
        for task in tuple(sending):
            await asyncio.wait((task,))

    async def _open(self) -> bool:
        try:
            return bool(await self.store.open_threads())
        except StorageError:
            return False

    async def _send(self, channel: MemoryChannel, one: Chat) -> None:
        """Send the chat's next item. It is sent again after the next start if it was not accepted."""
        _, item = one.due[0]
        try:
            accepted = await channel.bring(item)
        except StorageError:
            return
        one.due.pop(0)
        self._note(one, item, accepted)

    def _note(self, one: Chat, item: Inbound, accepted: Acceptance) -> None:
        assert accepted.status in ("accepted", "duplicate"), accepted
        one.accepted.setdefault(item.message_id, len(one.accepted))

    def _press(self, channel: MemoryChannel, sending: set[asyncio.Task[None]], people: Supervisor) -> None:
        self._asked += [event for event in channel.events if isinstance(event, ApprovalRequired)]
        # Of the other events none is looked at or waited for.
        channel.events.clear()
        for event in self._asked:
            if event.interaction_id in self._pressed or self._rng.random() > 0.08:
                continue
            self._pressed.add(event.interaction_id)
            number = event.message_id.removeprefix("m").split("-")[0]
            reply = ApprovalReply(
                message_id=f"p{event.interaction_id}",
                native_id=f"p{event.interaction_id}",
                thread=ThreadKey(channel="console", account="local", chat=f"c{number}"),
                author=Author(id="owner"),
                received_at=self.clock.now(),
                interaction_id=button_handle(event.interaction_id),
                choice="",
                option=self._rng.randrange(len(event.options)),
            )
            task = people.spawn(self._bring(channel, reply), name="press")
            sending.add(task)
            task.add_done_callback(sending.discard)

    async def _bring(self, channel: MemoryChannel, reply: ApprovalReply) -> None:
        try:
            await channel.bring(reply)
        except StorageError:
            self._pressed.discard(reply.native_id.removeprefix("p"))

    def _outcome(self, message_id: str) -> str | None:
        (entry,) = [row for row in self.store._entries.values() if row.message_id == message_id]
        return entry.outcome

    async def judge(self) -> dict[str, int]:
        """Check every chat; how many turns there were, and how many messages joined or steered one."""
        counts = {"turns": 0, "joined": 0, "steered": 0}
        await self.store.open()
        for one in self.chats:
            records = await self.store.read_log(one.thread)
            seen, found = judged(one, records)
            for key, count in found.items():
                counts[key] += count
            for message in one.accepted.keys() - set(seen):
                assert self._outcome(message) in ("declined", "command"), f"{message} has no turn"
        rows = [row.new.key for row in self.store._outbox.values()]
        assert len(rows) == len(set(rows)), "a turn has two replies"
        return counts


def judged(one: Chat, records: Sequence[Record]) -> tuple[list[str], dict[str, int]]:
    """Check the log of a chat: every message belongs to at most one turn, in the order of acceptance, and the
    answers name the words of exactly their messages. Returns the messages that have a turn, and counts."""
    ends = [record for record in records if record.kind in ("assistant", "error")]
    ends = [record for record in ends if not record.body.get("partial")]
    seen: list[str] = []
    unanswered: list[str] = []
    steered = 0
    for end in ends:
        covered = [end.message_id, *end.body.get("together", ())]
        assert not set(covered) & set(seen), f"{covered} was answered before"
        seen += covered
        steered += len(end.body.get("steered", ()))
        words = [one.words[message] for message in covered]
        if end.kind == "error":
            unanswered += words
            continue
        named = _WORD.findall(str(end.body["text"]))
        assert [word for word in named if word in words] == words, (named, words)
        assert set(named) - set(words) <= set(unanswered), f"{named} names more than {words}"
        unanswered = []
    places = [one.accepted[message] for message in seen]
    assert places == sorted(places), f"the order {seen} is not that of acceptance"
    said = [record.message_id for record in records if record.kind == "user"]
    assert len(said) == len(set(said)), "words were recorded twice"
    joined = sum(len(end.body.get("together", ())) for end in ends)
    return seen, {"turns": len(ends), "joined": joined, "steered": steered}
