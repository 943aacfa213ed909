"""Run the command /runs: list the runs of workflows in a chat, or stop one.

A run in progress is stopped when the command is accepted (`gateway.ingress.stops`); its turn is over when
this one begins. A paused run is ended here, and so is the record of those that a /stop has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from gateway.agents.agent_book import AgentBook
from gateway.storage.codec import details_of
from gateway.storage.inbox_items import run_to_stop
from gateway.storage.log_records import AssistantRecord, content_of
from gateway.storage.ports import Interaction, Store
from gateway.turns.journal import StoreJournal
from gateway.turns.workflow_runs import ListedRun, WorkflowRuns
from pipeline.domain.clock import Clock
from pipeline.domain.events import EXPIRED
from pipeline.domain.messages import SessionCommand

_NONE = "No workflow has run in this chat."
_LIST = "The runs in this chat, newest first:\n\n{lines}\n\n`/runs stop` with its name ends one."
_HOW = "Say `/runs`, or `/runs stop` and a run as the list names it."
_UNKNOWN = "There is no run `{handle}` in this chat. `/runs` shows those that there are."
_OTHERS = "The run `{handle}` is another person's, so this is for them to decide."
_OVER = "The run `{handle}` of `{name}` has ended already."
_ENDED = "Stopped the run `{handle}` of `{name}`."
_ACTIVE: Final = {"pending": "waits for its turn", "running": "running", "paused": "paused"}
_ASKED_CHARS = 80
_ANSWERS: Final = 100
"""Newest answers among which the questions of stopped runs are looked for."""
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


class RunsCommand:
    """Runs the command in all threads. `closed` is called with each question that is no longer open."""

    def __init__(
        self, store: Store, agents: AgentBook, clock: Clock, closed: Callable[[Interaction], None]
    ) -> None:
        self._store = store
        self._clock = clock
        self._closed = closed
        self._runs = WorkflowRuns(store, agents)

    async def run(self, command: SessionCommand, journal: StoreJournal) -> None:
        """List the runs, or stop the named one. Raises StorageError."""
        runs = await self._runs.of(command.thread.encode())
        handle = run_to_stop(command)
        if handle:
            await journal.commit_notice(await self._stopped(command, journal, handle, runs))
        else:
            await journal.commit_notice(_HOW if command.argument else _listed(runs, self._clock.now()))

    async def end_stopped(self, command: SessionCommand, journal: StoreJournal) -> None:
        """Record that the runs are over whose questions and waits a stop has closed. Raises StorageError."""
        thread = command.thread.encode()
        ended = [one.message_id for one in await self._runs.of(thread) if one.cut_off]
        for message_id in ended:
            await journal.end_run(message_id)
        journal.closed = await self._closed_in(thread, ended) if ended else ()

    async def _closed_in(self, thread: str, ended: Sequence[str]) -> tuple[Interaction, ...]:
        """The questions of these messages' runs that were closed without an answer."""
        answers = map(content_of, await self._store.read_log(thread, kinds=("assistant",), limit=_ANSWERS))
        asked = [one.paused_for for one in answers if isinstance(one, AssistantRecord)]
        known = [await self._store.interaction(question) for ids in asked for question in ids]
        return tuple(
            one[0]
            for one in known
            if one is not None and one[1] == EXPIRED and details_of(one[0]).asked_in in ended
        )

    async def _stopped(
        self, command: SessionCommand, journal: StoreJournal, handle: str, runs: Sequence[ListedRun]
    ) -> str:
        run = next((one for one in runs if one.handle == handle), None)
        if run is None:
            return _UNKNOWN.format(handle=_plain(handle))
        words = {"handle": run.handle, "name": run.agent}
        if not command.private and run.began_by != command.author.id:
            return _OTHERS.format(**words)
        if run.shown.status == "paused":
            await self._end(run, journal)
            return _ENDED.format(**words)
        stopped_now = run.stopped and run.since >= command.received_at
        return _ENDED.format(**words) if stopped_now else _OVER.format(**words)

    async def _end(self, run: ListedRun, journal: StoreJournal) -> None:
        """End a paused run: first its record, so that an answer that comes between finds it over."""
        await journal.end_run(run.message_id)
        for question in run.questions:
            await self._store.expiries.close(question.id, at=self._clock.now())
            self._closed(question)
        journal.closed = run.questions


def _listed(runs: Sequence[ListedRun], now: float) -> str:
    return _LIST.format(lines="\n".join(_line(run, now) for run in runs)) if runs else _NONE


def _line(run: ListedRun, now: float) -> str:
    status, age = run.shown.status, _age(now - run.since)
    state = "stopped" if run.stopped else status
    words = f"{_ACTIVE[status]} for {age}" if status in _ACTIVE else f"{state} {age} ago"
    at = f" at `{_plain(run.shown.node)}`" if run.shown.node else ""
    asks = _first_line(run.shown.waits_for)
    waits = f". It waits for an answer: {asks}" if asks else ""
    return f"- `{run.handle}` {run.agent}: {words}{at}{waits}"


def _age(seconds: float) -> str:
    """A length of time in words, rounded down."""
    for unit, name in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        number = int(seconds // unit)
        if number >= 1:
            return f"{number} {name}" if number == 1 else f"{number} {name}s"
    return "less than a minute"


def _first_line(text: str) -> str:
    line = " ".join(text.strip().split("\n", 1)[0].split())
    return line if len(line) <= _ASKED_CHARS else line[: _ASKED_CHARS - 1] + "…"


def _plain(text: str) -> str:
    return " ".join(text.replace("`", "").split())[:60]
