"""Read the runs of workflows in a chat from its log: what they are at, and what they wait for.

There is no table of runs: a run is the records of the message that began it. Reading is bounded by the newest
messages of the chat; a paused run is found at any age, by its question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.agents.agent_book import AgentBook, ShownRun, WorkflowFacts
from gateway.storage.codec import GATE, details_of
from gateway.storage.inbox_items import asked_in, run_handle
from gateway.storage.log_records import ErrorRecord, UserRecord, content_of
from gateway.storage.ports import InboxEntry, Interaction, Record, RecordKind, Store
from gateway.turns.run_codec import runs_of
from pipeline.domain.frozen import dataclass

MOST: Final = 20
"""Runs that are listed."""
_LOOKED_AT: Final = 400
"""Newest messages of a chat among which runs are looked for."""
_STOPPED: Final = "stopped"
_OF_A_RUN: Final[tuple[RecordKind, ...]] = ("user", "step", "assistant", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """One run."""

    handle: str
    """How people name it."""
    message_id: str
    """The message that began it."""
    agent: str
    """The name of the agent whose workflow it is."""
    began_by: str
    """The user who began it, as far as it is known; empty otherwise."""
    shown: ShownRun
    since: float
    """When it came to this state, as Unix time."""
    stopped: bool = False
    """It has ended because a person stopped it."""
    questions: tuple[Interaction, ...] = ()
    """Those that it waits for."""
    cut_off: bool = False
    """It was paused, and a stop has closed what it waited for; no record says so yet."""


class WorkflowRuns:
    """Reads the runs of all threads. Keeps nothing in memory."""

    def __init__(self, store: Store, agents: AgentBook) -> None:
        self._store = store
        self._agents = agents

    async def of(self, thread: str) -> tuple[ListedRun, ...]:
        """The newest runs of the thread, newest first, and every paused one. Raises StorageError."""
        waiting: dict[str, list[Interaction]] = {}
        # Those whose time has just come are among them: their entries are about to follow. The questions are
        # read first, because an answer closes its question and adds its entry in one step.
        for question in await self._store.pending_interactions(thread, now=0.0):
            if question.kind == GATE:
                waiting.setdefault(details_of(question).asked_in, []).append(question)
        open_entries = await self._store.open_entries(thread)
        said = await self._store.read_log(thread, kinds=("user",), limit=_LOOKED_AT)
        began = [record.message_id for record in said if self._begins(UserRecord.of(record))]
        newest = list(dict.fromkeys(reversed(began)))[:MOST]
        older = [message for message in waiting if message not in newest]
        found = [await self._read(thread, one, waiting.get(one, ()), open_entries) for one in newest + older]
        return tuple(one for one in found if one is not None)

    def _begins(self, user: UserRecord) -> bool:
        return not user.answers and not user.turn and self._facts(user.agent) is not None

    def _facts(self, agent: str) -> WorkflowFacts | None:
        found = self._agents.find(agent)
        return None if found is None else found.workflow

    async def _read(
        self,
        thread: str,
        message_id: str,
        questions: Sequence[Interaction],
        open_entries: Sequence[InboxEntry],
    ) -> ListedRun | None:
        rows = await self._store.read_log(thread, kinds=_OF_A_RUN, message_id=message_id)
        user = next((UserRecord.of(row) for row in rows if row.kind == "user"), None)
        facts = None if user is None else self._facts(user.agent)
        agent = None if user is None else self._agents.find(user.agent)
        if user is None or facts is None or agent is None:
            return None
        entry = next((one for one in open_entries if asked_in(one.item) == message_id), None)
        recorded = _shown(facts, rows)
        cut_off = recorded.status == "paused" and entry is None and not questions
        shown = _now(recorded, is_open=entry is not None, cut_off=cut_off)
        ended = [content for row in rows if isinstance(content := content_of(row), ErrorRecord)]
        return ListedRun(
            handle=run_handle(message_id),
            message_id=message_id,
            agent=agent.name,
            began_by=_began_by(user, questions, entry),
            shown=shown,
            since=rows[0].at if shown.status in ("pending", "running") else rows[-1].at,
            stopped=cut_off or (shown.status == "failed" and _was_stopped(ended, rows)),
            questions=tuple(questions),
            cut_off=cut_off,
        )


def _shown(facts: WorkflowFacts, rows: Sequence[Record]) -> ShownRun:
    """What the newest run among the records of a message says."""
    runs = list(runs_of(rows).values())
    if runs:
        return facts.shown(runs[-1])
    return ShownRun(status="failed" if any(row.kind == "error" for row in rows) else "pending")


def _now(shown: ShownRun, *, is_open: bool, cut_off: bool) -> ShownRun:
    """The run as it is now: its turn may be in progress, or wait for one, and otherwise it has ended."""
    if is_open and shown.status in ("running", "paused"):
        return ShownRun(status="running", node=shown.node)
    if cut_off or (not is_open and shown.status in ("pending", "running")):
        return ShownRun(status="failed", node=shown.node)
    return shown


def _was_stopped(ended: Sequence[ErrorRecord], rows: Sequence[Record]) -> bool:
    if any(error.code == _STOPPED for error in ended):
        return True
    return any(row.kind == "step" and row.body.get("reason") == "aborted" for row in rows)


def _began_by(user: UserRecord, questions: Sequence[Interaction], entry: InboxEntry | None) -> str:
    if entry is not None:
        return entry.item.author.id
    for question in questions:
        return str(question.body.get("author", "")) or question.allowed_users[0]
    return user.author
