"""Gathered speech as a state machine: whatever is said, in whatever order, amid failures and restarts,
arrives once, whole and in time."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError
from tests.support.examples import examples
from tests.voice.endpointing.buffer_harness import FaultyBuffers, crash
from voice.endpointing.stream_buffer import Flushed, StreamBufferManager

PLAIN = ("ann", "ben")
"""Threads whose chunks carry no numbers; beside them is a stream whose chunks do."""
SHAPES = (
    "{w}",
    "{w} and",
    "please do {w} for me now",
    "{w} is what I have been looking for.",
    "{w}.",
    "yesterday {w} cost me $3.",
)
SOON = 1e-3


class Model:
    """What was said and what arrived, as a dutiful receiver sees it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.said: dict[str, list[str]] = defaultdict(list)
        self.ended: dict[str, float] = {}  # by word
        self.arrived: dict[str, list[str]] = defaultdict(list)
        self.received: dict[str, Flushed] = {}  # by generation
        self.attempted: dict[str, Flushed] = {}
        self.failing: set[str] = set()  # threads whose last hand-over failed
        self.behind: set[str] = set()  # threads with a failed hand-over and not everything received since
        self.speaking: set[str] = set()
        self.mode = "takes it"
        self.wrong: list[AssertionError] = []
        self.sent: dict[str, set[int]] = defaultdict(set)
        self.given_up: dict[str, set[int]] = defaultdict(set)
        self.numbers: dict[str, int] = {}  # by word

    async def receive(self, flushed: Flushed) -> None:
        try:
            first_try = flushed.generation not in self.attempted
            known = self.attempted.setdefault(flushed.generation, flushed)
            assert known.text == flushed.text, "a generation is one text for ever"
            if first_try:
                self.check(flushed)
        except AssertionError as error:
            self.wrong.append(error)  # the manager takes whatever is raised here for a failed try
        if self.mode == "fails":
            self.failing.add(flushed.thread_id)
            self.behind.add(flushed.thread_id)
            raise StorageError("not now")
        await asyncio.sleep(0)
        if flushed.generation not in self.received:
            self.received[flushed.generation] = flushed
            self.arrived[flushed.thread_id].extend(words(flushed.text))
        if self.mode == "takes it and fails":
            self.failing.add(flushed.thread_id)
            self.behind.add(flushed.thread_id)
            raise StorageError("taken, and the answer was lost")
        self.failing.discard(flushed.thread_id)
        if not self.undelivered(flushed.thread_id):
            self.behind.discard(flushed.thread_id)

    def check(self, flushed: Flushed) -> None:
        """That the time and the reason fit the words."""
        now, ends = self.clock.monotonic(), [self.ended[word] for word in words(flushed.text)]
        reason, thread = flushed.reason, flushed.thread_id
        assert ends, "nothing empty is flushed"
        if len(flushed.text) < 20:
            assert reason in {"complete", "max_time", "silence", "forced"}
        if reason == "silence":
            assert now >= max(ends) + 3 - SOON, "a timer of an older buffer"
        if reason == "complete_thought":
            assert now >= max(ends) + 1.5 - SOON, "a timer of an older buffer"
        if reason == "max_time":
            assert now >= min(ends) + 15 - SOON, "a timer of an older buffer"
        if thread in self.speaking and thread not in self.behind:
            assert reason in {"complete", "max_time", "forced"}
        self.check_gaps(flushed)

    def check_gaps(self, flushed: Flushed) -> None:
        thread = flushed.thread_id
        here = [self.numbers[word] for word in words(flushed.text) if word in self.numbers]
        assert here == sorted(here)
        unsent = set(range(max(here, default=0))) - self.sent[thread] - self.given_up[thread]
        if flushed.reason in {"max_time", "forced"}:
            self.given_up[thread] |= unsent
        else:
            assert not unsent, "a gap was not waited for"

    def undelivered(self, thread: str) -> set[str]:
        return set(self.said[thread]) - set(self.arrived[thread])


def words(text: str) -> list[str]:
    return re.findall(r"w\d+", text)


class Gathering(RuleBasedStateMachine):
    """A manager with a buffers, people who speak, and a hand on everything that can go wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.model = Model()
        self.buffers = FaultyBuffers()
        self.count = 0
        self.streams = 0

    @initialize()
    def begin(self) -> None:
        self.runner.run(self._start())

    @rule(
        thread=st.sampled_from(PLAIN),
        shapes=st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3),
        complete=st.integers(0, 5).map(lambda number: number == 0),
        late_s=st.sampled_from([0.0, 0.0, 0.4, 2.0]),
    )
    def say(self, thread: str, shapes: list[str], complete: bool, late_s: float) -> None:
        """Several at once: the calls run into one another."""
        calls = [
            {"chunk": self._word(thread, shape, late_s), "is_complete": complete, "late_s": late_s}
            for shape in shapes
        ]
        self.runner.run(self._add(thread, calls))

    @rule(
        ahead=st.lists(st.integers(0, 3), min_size=1, max_size=3),
        shape=st.sampled_from(SHAPES),
        complete=st.integers(0, 7).map(lambda number: number == 0),
        again=st.booleans(),
    )
    def say_out_of_order(self, ahead: list[int], shape: str, complete: bool, again: bool) -> None:
        """Numbers near the first one that is missing, and now and then one twice."""
        sent, calls = self.model.sent[self.stream], []
        for skip in ahead:
            missing = [number for number in range(len(sent) + 4) if number not in sent]
            number = missing[skip]
            sent.add(number)
            chunk = self._word(self.stream, shape, 0.0)
            self.model.numbers[words(chunk)[0]] = number
            calls.append({"chunk": chunk, "is_complete": complete, "sequence": number})
            if again:
                calls.append({"chunk": chunk, "sequence": number})
        self.runner.run(self._add(self.stream, calls))

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0, 1.5, 1.6, 2.9, 3.0, 5.0, 15.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.runner.run(self._wait(seconds))

    @rule(thread=st.sampled_from((*PLAIN, "stream")))
    def force(self, thread: str) -> None:
        self.runner.run(self.manager.force_flush(self._name(thread)))

    @rule(thread=st.sampled_from((*PLAIN, "stream")), on=st.booleans())
    def speak(self, thread: str, on: bool) -> None:
        async def switch() -> None:
            self.manager.speaking(self._name(thread), on)

        (self.model.speaking.add if on else self.model.speaking.discard)(self._name(thread))
        self.runner.run(switch())

    @rule(mode=st.sampled_from(["takes it", "takes it", "fails", "takes it and fails"]))
    def change_the_receiver(self, mode: str) -> None:
        self.model.mode = mode

    @rule(down_s=st.sampled_from([0.0, 1.0, 20.0]), killed=st.booleans())
    def restart(self, down_s: float, killed: bool) -> None:
        self.runner.run(self._restart(down_s, killed))

    @invariant()
    def every_flush_was_right(self) -> None:
        for error in self.model.wrong:
            raise error

    @invariant()
    def nothing_waits_longer_than_it_may(self) -> None:
        now = self.model.clock.monotonic()
        for thread in self.model.said:
            if thread not in self.model.failing:
                waiting = [self.model.ended[word] for word in self.model.undelivered(thread)]
                assert not waiting or now < min(waiting) + 15 + SOON

    @invariant()
    def nothing_arrives_twice_or_out_of_order(self) -> None:
        for thread, arrived in self.model.arrived.items():
            said = self.model.said[thread]
            assert len(arrived) == len(set(arrived))
            if thread in PLAIN:
                assert arrived == said[: len(arrived)]

    def teardown(self) -> None:
        try:
            if hasattr(self, "manager"):
                self.runner.run(self._finish())
                self.every_flush_was_right()
        finally:
            if hasattr(self, "manager"):
                self.runner.run(crash(self.manager))
            self.runner.close()

    # ---------------------------------------------------------------- inside

    @property
    def stream(self) -> str:
        return f"stream-{self.streams}"

    def _name(self, thread: str) -> str:
        return self.stream if thread == "stream" else thread

    def _word(self, thread: str, shape: str, late_s: float) -> str:
        self.count += 1
        word = f"w{self.count}"
        self.model.said[thread].append(word)
        self.model.ended[word] = self.model.clock.monotonic() - late_s
        return shape.format(w=word)

    async def _add(self, thread: str, calls: list[dict[str, Any]]) -> None:
        now = self.model.clock.monotonic()
        async with asyncio.TaskGroup() as group:
            for call in calls:
                spoken_at = now - call.pop("late_s", 0.0)
                group.create_task(self.manager.add_speech_chunk(thread, **call, spoken_at=spoken_at))

    async def _wait(self, seconds: float) -> None:
        await self.model.clock.advance(seconds)
        for _ in range(200):  # what is due now is received, however many there are
            await asyncio.sleep(0)

    async def _start(self) -> None:
        self.model.speaking.clear()
        self.manager = StreamBufferManager(
            on_flush=self.model.receive, clock=self.model.clock, store=self.buffers
        )
        await self.manager.restore()

    async def _restart(self, down_s: float, killed: bool) -> None:
        if killed:
            await crash(self.manager)
        else:
            await self.manager.close()
        await self.model.clock.advance(down_s)
        self.streams += 1  # the next process counts again
        await self._start()

    async def _finish(self) -> None:
        self.model.mode = "takes it"
        await self._wait(60)
        for thread, said in self.model.said.items():
            assert sorted(said) == sorted(self.model.arrived[thread]), "something was lost or doubled"
        await self.manager.close()
        assert await self.buffers.buffers() == ()
        assert len(asyncio.all_tasks()) == 1


Gathering.TestCase.settings = examples(40, steps=30)
TestSpeechIsGathered = Gathering.TestCase
