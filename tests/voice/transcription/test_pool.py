"""The pool over real processes that speak its protocol without a model: turns, failures, deadlines, ends."""

from __future__ import annotations

import asyncio
import os
import select
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from voice.audio.segments import SpeechSegment
from voice.errors import TranscriberBusy, TranscriberUnavailable, TranscriptionTimeout
from voice.settings import TranscriptionSettings
from voice.transcriber import Urgency, Waiting
from voice.transcription.jobs import TranscriptionJob
from voice.transcription.pool import Pool
from voice.transcription.protocol import TranscribedSegment
from voice.workers.child import command


def piece(text: str, *, seconds: float = 1.0, index: int = 0) -> SpeechSegment:
    """Samples that say in plain text what the process is to do."""
    pcm = text.encode().ljust(int(seconds * 32_000), b"\0")
    return SpeechSegment(index=index, pcm=pcm, spans=((0.0, seconds),))


class PoolHarness:
    """A pool and its log."""

    def __init__(self, log: Path, *options: str, **settings: float) -> None:
        self.log = log
        values = {"workers": 1, "deadline_floor_s": 20.0, **settings}
        self.pool = Pool(
            TranscriptionSettings(model_dir=log.parent, **values),  # type: ignore[arg-type] # fields of several types
            command("tests.voice.transcription.pool_child", "--log", str(log), *options),
            lambda _: None,
        )

    @property
    def jobs(self) -> list[str]:
        """What was asked of the processes, in order."""
        return [line for line in self.lines if line != "started"]

    @property
    def lines(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    async def hear(
        self,
        text: str,
        *,
        speaker: str = "ann",
        urgency: Urgency = "note",
        seconds: float = 1.0,
        reported: list[Waiting] | None = None,
    ) -> str:
        """One recording of one piece, from admission to the end."""
        hearing = TranscriptionJob(
            speaker=speaker,
            urgency=urgency,
            beam=5,
            on_waiting=reported.append if reported is not None else None,
        )
        self.pool.admit(hearing)
        try:
            return words(await self.pool.submit(hearing, piece(text, seconds=seconds)))
        finally:
            self.pool.leave(hearing)

    async def outcome(self, text: str, **options: object) -> str | Exception:
        try:
            return await self.hear(text, **options)  # type: ignore[arg-type] # options of several types
        except (TranscriberBusy, TranscriberUnavailable, TranscriptionTimeout) as error:
            return error

    @asynccontextmanager
    async def stopped(self) -> AsyncIterator[None]:
        """The only process is stopped meanwhile."""
        (pid,) = self.pool.pids
        os.kill(pid, signal.SIGSTOP)
        yield
        await settled()
        os.kill(pid, signal.SIGCONT)


def words(heard: TranscribedSegment) -> str:
    return " ".join(chunk.text for chunk in heard.chunks)


async def settled() -> None:
    """Let the tasks that were just started run up to where they wait for a process."""
    for _ in range(10):
        await asyncio.sleep(0)


async def until(holds: Callable[[], bool]) -> None:
    """Return when `holds()`; the test's own time limit is the safety net."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - what it waits for happens in another process
            await asyncio.sleep(0.01)


def gone(process: int) -> bool:
    """Whether the process behind a pidfd ends; closes the pidfd."""
    try:
        return bool(select.select([process], [], [], 60.0)[0])
    finally:
        os.close(process)


@asynccontextmanager
async def open_pool(log: Path, *options: str, **settings: float) -> AsyncIterator[PoolHarness]:
    made = PoolHarness(log, *options, **settings)
    try:
        yield made
    finally:
        processes = [os.pidfd_open(pid) for pid in made.pool.pids]
        await made.pool.close()
        assert made.pool.pids == ()
        assert all(gone(process) for process in processes)


@pytest.fixture
async def one(tmp_path: Path) -> AsyncIterator[PoolHarness]:
    """One recogniser, up."""
    async with open_pool(tmp_path / "log") as made:
        await made.pool.warm_up()
        yield made


async def test_processes_start_only_when_they_are_needed(tmp_path: Path) -> None:
    async with open_pool(tmp_path / "log", workers=2) as two:
        assert (two.pool.status(), two.pool.pids) == ("not started", ())
        assert await two.hear("hello") == "hello"
        assert (two.pool.status(), len(two.pool.pids)) == ("ready", 1)
        await two.pool.warm_up()
        assert len(two.pool.pids) == 2


async def test_speakers_take_turns_and_live_speech_comes_first(one: PoolHarness) -> None:
    async with asyncio.TaskGroup() as group, one.stopped():
        for text in ("a0", "a1", "a2", "a3"):
            group.create_task(one.hear(text, speaker="a", seconds=15.0))
            await settled()
        for name in "bc":
            group.create_task(one.hear(name, speaker=name, seconds=3.0))
        await settled()
        group.create_task(one.hear("live", speaker="d", urgency="final"))
        await settled()
    order = [job.split()[0] for job in one.jobs]
    assert order == ["a0", "live", "a1", "b+c", "a2+a3"]


async def test_a_process_that_dies_in_a_job_is_replaced_and_the_job_is_done(
    one: PoolHarness, tmp_path: Path
) -> None:
    (first,) = one.pool.pids
    assert await one.hear(f"once {tmp_path / 'marker'}") != ""
    assert one.pool.pids != (first,)
    assert one.lines.count("started") == 2


async def test_a_process_killed_from_outside_in_a_job_costs_no_one_the_words(one: PoolHarness) -> None:
    (first,) = one.pool.pids
    os.kill(first, signal.SIGSTOP)
    async with asyncio.TaskGroup() as group:
        job = group.create_task(one.hear("hello"))
        await settled()
        os.kill(first, signal.SIGKILL)
    assert job.result() == "hello"
    assert one.pool.status() == "ready"


async def test_a_recording_that_kills_every_process_fails_alone(one: PoolHarness) -> None:
    async with asyncio.TaskGroup() as group, one.stopped():
        blocker = group.create_task(one.hear("blocker"))
        await settled()
        deadly = group.create_task(one.outcome("die", speaker="mallory"))
        await settled()
        innocent = group.create_task(one.hear("innocent", speaker="bob"))
    error = deadly.result()
    assert isinstance(error, TranscriberUnavailable)
    assert "send the recording again" in str(error)
    assert not error.permanent
    assert (blocker.result(), innocent.result()) == ("blocker", "innocent")
    assert one.jobs[1].startswith("die+innocent")  # they were a batch, and then each was alone


async def test_a_job_over_its_deadline_ends_its_process_and_fails_alone(tmp_path: Path) -> None:
    async with open_pool(tmp_path / "log", deadline_floor_s=2.0) as brief:
        await brief.pool.warm_up()
        stuck = os.pidfd_open(brief.pool.pids[0])
        error = await brief.outcome("hang")
        assert isinstance(error, TranscriptionTimeout)
        assert gone(stuck)
        assert [job for job in brief.jobs if job.startswith("hang")] == ["hang None"]
        # A recording's own length is its deadline where that is longer.
        assert await brief.hear("hello", seconds=25.0) == "hello"


async def test_a_long_recording_gets_its_own_length_as_its_deadline(tmp_path: Path) -> None:
    async with open_pool(tmp_path / "log", deadline_floor_s=0.000_001) as brief:
        assert await brief.hear("hello", seconds=25.0) == "hello"


async def test_in_a_batch_that_takes_too_long_only_the_guilty_recording_fails(tmp_path: Path) -> None:
    async with open_pool(tmp_path / "log", deadline_floor_s=5.0) as brief:
        await brief.pool.warm_up()
        async with asyncio.TaskGroup() as group, brief.stopped():
            group.create_task(brief.hear("blocker"))
            await settled()
            guilty = group.create_task(brief.outcome("hang", speaker="mallory"))
            innocent = group.create_task(brief.hear("innocent", speaker="bob"))
        assert isinstance(guilty.result(), TranscriptionTimeout)
        assert innocent.result() == "innocent"


async def test_an_answer_that_makes_no_sense_fails_its_job_and_ends_the_process(one: PoolHarness) -> None:
    (first,) = one.pool.pids
    assert isinstance(await one.outcome("nonsense"), TranscriberUnavailable)
    assert await one.hear("hello") == "hello"
    assert one.pool.pids != (first,)


async def test_after_its_share_of_jobs_a_process_is_replaced_while_it_still_serves(tmp_path: Path) -> None:
    async with open_pool(tmp_path / "log", recycle_after=2) as used:
        await used.pool.warm_up()
        (first,) = used.pool.pids
        for text in ("one", "two"):
            assert await used.hear(text) == text
        assert used.pool.pids == (first,)
        await until(lambda: used.pool.pids not in ((first,), ()))
        assert await used.hear("three") == "three"


async def test_what_is_shown_meanwhile_is_heard_only_by_an_idle_recogniser(one: PoolHarness) -> None:
    assert await one.hear("so far", urgency="partial") == "so far"
    async with asyncio.TaskGroup() as group, one.stopped():
        group.create_task(one.hear("note"))
        await settled()
        assert isinstance(await one.outcome("so far", urgency="partial"), TranscriberBusy)


async def test_nothing_is_started_for_what_is_shown_meanwhile(tmp_path: Path) -> None:
    async with open_pool(tmp_path / "log") as cold:
        assert isinstance(await cold.outcome("so far", urgency="partial"), TranscriberBusy)
        assert cold.lines == []


async def test_too_many_recordings_are_refused_at_once_but_live_speech_has_its_own_room(
    tmp_path: Path,
) -> None:
    async with open_pool(tmp_path / "log", queue_limit=1) as small:
        await small.pool.warm_up()
        async with asyncio.TaskGroup() as group, small.stopped():
            notes = [group.create_task(small.hear(text)) for text in ("one", "two")]
            await settled()
            assert isinstance(await small.outcome("three"), TranscriberBusy)
            live = group.create_task(small.hear("live", urgency="final"))
            await settled()
        assert [note.result() for note in notes] == ["one", "two"]
        assert live.result() == "live"


async def test_too_much_speech_is_refused_at_once(tmp_path: Path) -> None:
    async with open_pool(tmp_path / "log", queue_seconds=10.0) as small:
        await small.pool.warm_up()
        async with asyncio.TaskGroup() as group, small.stopped():
            group.create_task(small.hear("at work", seconds=9.0))
            await settled()
            group.create_task(small.hear("waiting", seconds=9.0))
            await settled()
            assert isinstance(await small.outcome("no room", seconds=2.0), TranscriberBusy)


async def test_who_waits_is_informed_how_many_are_ahead_and_for_how_long(one: PoolHarness) -> None:
    reported: list[Waiting] = []
    async with asyncio.TaskGroup() as group, one.stopped():
        group.create_task(one.hear("at work", seconds=10.0))
        await settled()
        group.create_task(one.hear("next", speaker="b", seconds=20.0))
        await settled()
        group.create_task(one.hear("last", speaker="c", reported=reported))
        await settled()
    assert [waiting.ahead for waiting in reported] == [2]
    assert 1.0 < reported[0].eta_s < 10.0


async def test_the_language_of_the_beginning_is_likely_for_the_rest(one: PoolHarness) -> None:
    hearing = TranscriptionJob(speaker="ann", urgency="note", beam=5, likely="fr")
    one.pool.admit(hearing)
    first = one.pool.submit(hearing, piece("de hallo"))
    second = one.pool.submit(hearing, piece("welt", index=1))
    assert [words(await first), words(await second)] == ["hallo", "welt"]
    one.pool.leave(hearing)
    assert one.jobs == ["de hallo fr", "welt de"]


async def test_what_is_withdrawn_while_it_waits_is_never_heard(one: PoolHarness) -> None:
    async with asyncio.TaskGroup() as group, one.stopped():
        running = group.create_task(one.hear("running"))
        await settled()
        waiting = group.create_task(one.hear("waiting"))
        await settled()
        waiting.cancel()
    assert running.result() == "running"
    assert one.jobs == ["running None"]


async def test_a_short_job_that_no_one_wants_is_finished_unheard(one: PoolHarness) -> None:
    (first,) = one.pool.pids
    async with one.stopped(), asyncio.TaskGroup() as group:
        unwanted = group.create_task(one.hear("unwanted"))
        await settled()
        unwanted.cancel()
    assert await one.hear("wanted") == "wanted"
    assert one.pool.pids == (first,)


async def test_a_long_job_that_no_one_wants_ends_its_process(one: PoolHarness) -> None:
    process = os.pidfd_open(one.pool.pids[0])
    async with asyncio.TaskGroup() as group:
        unwanted = group.create_task(one.hear("hang", seconds=25.0))
        await until(lambda: bool(one.jobs))
        unwanted.cancel()
    assert gone(process)
    assert await one.hear("wanted") == "wanted"


async def test_a_pool_that_cannot_start_says_why_to_everybody_and_does_not_spin(tmp_path: Path) -> None:
    async with open_pool(tmp_path / "log", "--refuse-to-start", workers=2) as broken:
        async with asyncio.TaskGroup() as group:
            outcomes = [group.create_task(broken.outcome(text)) for text in ("one", "two", "three")]
        assert {str(outcome.result()) for outcome in outcomes} == {"No model."}
        assert broken.pool.status() == "No model."
        for _ in range(20):
            await broken.outcome("again")
        assert broken.lines.count("started") < 8


async def test_closing_fails_everyone_who_is_heard_or_waits_and_starts_nothing_again(tmp_path: Path) -> None:
    async with open_pool(tmp_path / "log", workers=2) as busy:
        await busy.pool.warm_up()
        processes = [os.pidfd_open(pid) for pid in busy.pool.pids]
        async with asyncio.TaskGroup() as group:
            outcomes = [group.create_task(busy.outcome("hang")) for _ in range(4)]
            await until(lambda: len(busy.jobs) == 2)
            await busy.pool.close()
        assert all(isinstance(outcome.result(), TranscriberUnavailable) for outcome in outcomes)
        assert all(gone(process) for process in processes)
        assert isinstance(await busy.outcome("late"), TranscriberUnavailable)
        assert busy.pool.status() == "closed"


async def test_closing_while_processes_start_leaves_none(tmp_path: Path) -> None:
    async with open_pool(tmp_path / "log", workers=2) as starting:
        async with asyncio.TaskGroup() as group:
            job = group.create_task(starting.outcome("hello"))
            await settled()
            assert starting.pool.status() == "loading"
            await starting.pool.close()
        assert isinstance(job.result(), TranscriberUnavailable)
        assert starting.pool.pids == ()


async def test_the_pieces_of_one_note_are_spread_over_all_recognisers_and_paired_only_when_many_wait(
    tmp_path: Path,
) -> None:
    async with open_pool(tmp_path / "log", workers=2) as two:
        await two.pool.warm_up()
        stopped = two.pool.pids
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        hearing = TranscriptionJob(speaker="ann", urgency="note", beam=5)
        two.pool.admit(hearing)
        heard = [two.pool.submit(hearing, piece(f"p{index}", index=index)) for index in range(6)]
        await settled()
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        assert [words(await one) for one in heard] == [f"p{index}" for index in range(6)]
        two.pool.leave(hearing)
        assert [job.split()[0] for job in two.jobs if "+" in job] == ["p2+p3"]
