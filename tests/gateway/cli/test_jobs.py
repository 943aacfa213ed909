"""`parlour jobs` beside a running gateway: what waits, what was given up and why, retried and dropped."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.cli.jobs import jobs_finding
from gateway.cli.main import main
from gateway.scheduling.reminders import REMINDER
from gateway.storage.jobs import NewJob
from gateway.storage.ports import Store
from pipeline.domain.clock import ManualClock
from tests.support.harness import open_gateway
from tests.support.posting_channel import MemoryPosts

OWN_WORDS = {"author": "ann", "private": True, "text": "the code is 4711"}


def parlour(folder: Path, *arguments: str) -> int:
    return main(["jobs", *arguments, "--set", f'data.dir="{folder}"'])


async def until_dead(store: Store, clock: ManualClock) -> None:
    """Let time go by until the gateway has read the book and given a job up."""
    async with asyncio.timeout(60):
        while not await store.jobs.listed(limit=1, state="dead"):
            await clock.advance(60)


async def test_a_job_that_was_given_up_is_shown_with_its_reason_and_can_be_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    posts, clock = MemoryPosts(), ManualClock()
    thread = posts.thread("c1").encode()
    bad = NewJob(kind=REMINDER, key="bad", due=0.0, thread="no \x1b[31mthread", body=OWN_WORDS)
    late = NewJob(kind=REMINDER, key="late", due=4e9, thread=thread, body=OWN_WORDS)
    async with open_gateway(tmp_path, posts=posts, clock=clock) as harness:
        await harness.store.jobs.add(bad)
        await harness.store.jobs.add(late)
        await until_dead(harness.store, clock)

        assert await asyncio.to_thread(parlour, tmp_path) == 0
        first, dead, waiting, hint = capsys.readouterr().out.splitlines()
        assert first == "jobs: 2, given up: 1"
        assert dead.startswith("  1  reminder  given up after 1 attempt: the reminder cannot be read: ")
        assert waiting.startswith("  2  reminder  due in ")
        assert waiting.endswith(f" days  {thread}")
        assert "parlour jobs retry ID" in hint
        assert "4711" not in dead + waiting
        assert "\x1b" not in dead
        finding = await jobs_finding(tmp_path / "parlour.sqlite3")
        assert (finding.good, finding.words.split(";")[0]) == (False, "1 given up (reminder)")

        assert await asyncio.to_thread(parlour, tmp_path, "retry", "1") == 0
        assert capsys.readouterr().out.startswith("job 1 is due again")
        await until_dead(harness.store, clock)

        assert await asyncio.to_thread(parlour, tmp_path, "drop", "1") == 0
        assert await asyncio.to_thread(parlour, tmp_path, "retry", "2") == 1
        assert "no job with the id 2 was given up" in capsys.readouterr().err
        assert await asyncio.to_thread(parlour, tmp_path, "drop", "1") == 1
        assert "there is no job with the id 1" in capsys.readouterr().err
        finding = await jobs_finding(tmp_path / "parlour.sqlite3")
        assert (finding.good, finding.words) == (True, "1 waiting, none given up")
    assert posts.texts() == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "there is no store yet"),
        (("retry",), "the ID is missing"),
        (("--set", 'storage.kind="memory"'), "jobs in memory cannot be seen"),
    ],
)
def test_what_cannot_be_done_is_said_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert parlour(tmp_path, *arguments) != 0
    assert words in capsys.readouterr().err
