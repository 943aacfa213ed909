"""The end of a session as a job: repeated, interrupted, and with the setting removed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from gateway.agents.agent_book import AgentModels
from gateway.storage.jobs import Job
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Lease
from gateway.turns.session_ends import SESSION_END, SessionEnds
from gateway.turns.sessions import SessionState, load_session, session_record
from pipeline.domain.clock import ManualClock
from pipeline.domain.timeline import TimelineEntry
from pipeline.llm.scripted import ScriptedLlm
from tests.support.held_store import HeldStore

THREAD = "console:local:c1"
_JOB = Job(
    id=1,
    kind=SESSION_END,
    key="ses-1",
    due=0.0,
    thread=THREAD,
    owner="",
    body={"agent": ""},
    state="open",
    ready=0.0,
    attempts=1,
    fence=1,
    claimed=True,
    error="",
)


class EndsHarness:
    """A store with one thread that was used at the start of the clock, and the ends of its sessions."""

    def __init__(self, idle_s: float = 60.0, store: MemoryStore | None = None) -> None:
        self.store, self.clock = store or MemoryStore(), ManualClock()
        self.shown: list[TimelineEntry] = []
        self.session = SessionState("ses-1", stored=True)
        self.session.used_at = self.clock.now()
        limits = AgentModels(
            llm=ScriptedLlm.echo(), summarise_above=80, llm_timeout_s=60, session_idle_s=idle_s
        )
        self.ends = SessionEnds(
            store=self.store,
            clock=self.clock,
            models=lambda _agent: limits,
            when_idle=self._when_idle,
            on_ended=lambda _thread, line: self.shown.append(line),
        )

    async def open(self) -> None:
        await self.store.open()
        lease = await self.store.acquire_lease(THREAD, "me", ttl_s=600, now=0)
        assert lease is not None
        self._lease = lease
        await self.store.append(lease, [session_record("ses-1", "m", 0.0)])

    async def _when_idle(self, _thread: str, work: Callable[[Lease, SessionState], Awaitable[None]]) -> bool:
        await work(self._lease, self.session)
        return True


async def test_a_job_that_runs_again_after_a_crash_ends_no_second_session() -> None:
    harness = EndsHarness()
    await harness.open()
    harness.clock.step_wall(60)
    assert await harness.ends.run(_JOB) is None
    # As the next process sees it.
    harness.session = await load_session(harness.store, THREAD)
    assert await harness.ends.run(_JOB) is None
    assert len(await harness.store.read_log(THREAD, kinds=("session",))) == 2
    assert [line.text for line in harness.shown] == ["New conversation, after 1 minute without a message"]


async def test_a_session_that_was_used_meanwhile_ends_later() -> None:
    harness = EndsHarness()
    await harness.open()
    harness.clock.step_wall(20)
    assert await harness.ends.run(_JOB) == 40.0
    assert harness.session.session_id == "ses-1"


async def test_a_session_does_not_end_once_the_setting_is_removed() -> None:
    harness = EndsHarness(idle_s=0.0)
    await harness.open()
    harness.clock.step_wall(60)
    assert await harness.ends.run(_JOB) is None
    assert harness.session.session_id == "ses-1"
    assert harness.ends.job(harness.session, THREAD, 0.0) is None


async def test_a_message_that_comes_during_the_write_belongs_to_the_session_that_is_written() -> None:
    store = HeldStore()
    harness = EndsHarness(store=store)
    await harness.open()
    harness.clock.step_wall(60)
    store.held = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(harness.ends.run(_JOB))
        await store.held.wait()
        running.cancel()
    assert running.cancelled()
    assert harness.session.session_id == await store.current_session(THREAD) != "ses-1"


async def test_a_session_gets_one_job_in_a_process_and_a_new_one_another() -> None:
    harness = EndsHarness()
    job = harness.ends.job(harness.session, THREAD, 5.0)
    assert job is not None
    assert (job.kind, job.key, job.due) == (SESSION_END, "ses-1", 65.0)
    harness.session.end_is_due = True
    assert harness.ends.job(harness.session, THREAD, 9.0) is None
    harness.session.restart("ses-2")
    assert harness.ends.job(harness.session, THREAD, 9.0) == replace(job, key="ses-2", due=69.0)
