"""Track the open sessions per chat, and fan out frames to them. Never waits, never raises.

A session is one socket after its `hello`; connection.py handles the socket itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from functools import partial

from adapters.guests import Visitor
from adapters.streaming import LiveAnswer, LiveAnswers, LossyEventQueue
from adapters.web import outgoing
from adapters.web.file_links import LinkedFiles
from adapters.web.html_cache import HtmlCache
from adapters.web.inbound import thread_of
from adapters.web.protocol import FrameProblem
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock
from pipeline.domain.events import (
    ApprovalRequired,
    ErrorEvent,
    LlmToken,
    NodeCompleted,
    NodeStarted,
    PipelineEvent,
    ResponseComplete,
)
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.timeline import EntryRole, TimelineEntry

_log = logging.getLogger(__name__)
_REMEMBERED_ENTRIES = 2000
_OF_NODES = frozenset((NodeStarted, NodeCompleted))
_WITH_ENTRY = (ResponseComplete, ErrorEvent)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingFrame:
    """One frame for a session, with the data needed to skip it where it is already known."""

    frame: outgoing.Frame
    droppable: bool = False
    line: tuple[str, EntryRole] | None = None
    """The entry that the frame shows: (message_id, role)."""
    entry_id: int = 0
    is_entry: bool = False
    binary: bytes = b""
    """Sent directly after the frame, as a binary message."""
    sent: asyncio.Event | None = None
    """Set when the transport has accepted the frame."""


class Session:
    """One authenticated socket's outgoing side.

    It collects live frames from its creation on; `go_live` merges them with the history.
    """

    def __init__(
        self, chat: str, rendered: HtmlCache, *, nodes: bool = False, visitor: Visitor | None = None
    ) -> None:
        self.chat = chat
        """The gateway's id of the chat."""
        self.visitor = visitor or Visitor()
        self.nodes = nodes
        """Whether it gets the events of the graph's nodes."""
        self._rendered = rendered
        self.queue: LossyEventQueue[OutgoingFrame] = LossyEventQueue()
        self.ended: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        """Done when the socket must close: with its close code, or None when the client left."""
        self.watchers: set[Callable[[PipelineEvent], None]] = set()
        """Called with each live event of the chat once it is queued. They neither wait nor raise."""
        self._shown = BoundedDict[tuple[str, EntryRole], int](_REMEMBERED_ENTRIES)
        self._live = False

    def deliver(self, frame: OutgoingFrame) -> None:
        """Queue a frame, unless the client already has its entry. A session that reads too slowly is
        closed."""
        if frame.is_entry and self._live and (line := frame.line) is not None:
            if self._shown.get(line, -1) >= frame.entry_id:
                return
            self._shown[line] = frame.entry_id
        if not self.queue.put(frame, droppable=frame.droppable) and self.queue.too_slow:
            self.end(1013)

    def report(self, problem: FrameProblem, client_id: str | None) -> None:
        """Queue a problem with the frame `client_id`."""
        addressed = FrameProblem(code=problem.code, message=problem.message, client_id=client_id)
        self.deliver(OutgoingFrame(frame=outgoing.problem_frame(addressed)))

    def end(self, code: int | None) -> None:
        """Request that the socket is closed; the first call sets the code."""
        if not self.ended.done():
            self.ended.set_result(code)

    def go_live(
        self,
        history: tuple[TimelineEntry, ...],
        questions: tuple[ApprovalRequired, ...],
        answers: tuple[LiveAnswer, ...],
        *,
        earlier: int = 0,
    ) -> None:
        """Queue what follows the history that was just sent: snapshots, the questions of
        paused runs, `ready`, live frames.

        It has no await, so that `answers` and the collected frames match:
        collected tokens are part of the snapshots, collected entries may be part of the history.
        """
        for entry in history:
            self._shown[entry.message_id, entry.role] = entry.entry_id
        collected = self.queue.take_all()
        self._live = True
        for answer in answers:
            if self._answered(answer.message_id):
                continue
            self.deliver(OutgoingFrame(frame=outgoing.snapshot_frame(answer.message_id, answer.text)))
            for question in answer.approvals:
                self.deliver(OutgoingFrame(frame=outgoing.event_frame(question, self._rendered)))
        for question in questions:
            self.deliver(OutgoingFrame(frame=outgoing.event_frame(question, self._rendered)))
        self.deliver(OutgoingFrame(frame=outgoing.ready_frame(earlier=earlier)))
        for frame in collected:
            if frame.droppable or (frame.line is not None and not frame.is_entry and self._has(frame)):
                continue
            self.deliver(frame)

    def _has(self, frame: OutgoingFrame) -> bool:
        return frame.line is not None and self._shown.get(frame.line, -1) >= frame.entry_id

    def _answered(self, message_id: str) -> bool:
        return (message_id, "assistant") in self._shown or (message_id, "error") in self._shown


class Hub:
    """The open sessions by chat, and the answers in progress."""

    def __init__(
        self,
        *,
        max_per_chat: int,
        rendered: HtmlCache,
        clock: Clock,
        links: LinkedFiles | None = None,
        max_per_person: int = 40,
    ) -> None:
        self._max_per_chat = max_per_chat
        self._max_per_person = max_per_person
        self._links = links or LinkedFiles()
        self._rendered = rendered
        self._sessions: dict[str, set[Session]] = {}
        self._with_nodes = 0
        """How many sessions get the events of nodes: mostly none, and each node of each turn asks."""
        self._answers = LiveAnswers(clock)

    def join(self, chat: str, *, nodes: bool = False, visitor: Visitor | None = None) -> Session | None:
        """A new session that gets the chat's frames from now on, with `nodes` also the events of the graph's
        nodes; None when the chat or an invited person has too many."""
        if visitor is not None and visitor.person and self._open_of(visitor.person) >= self._max_per_person:
            return None
        sessions = self._sessions.setdefault(chat, set())
        if len(sessions) >= self._max_per_chat:
            return None
        session = Session(chat, self._rendered, nodes=nodes, visitor=visitor)
        sessions.add(session)
        self._with_nodes += nodes
        return session

    def leave(self, session: Session) -> None:
        """Forget `session`."""
        sessions = self._sessions.get(session.chat, set())
        if session in sessions:
            sessions.remove(session)
            self._with_nodes -= session.nodes
        if not sessions:
            self._sessions.pop(session.chat, None)

    def _open_of(self, person: str) -> int:
        return sum(session.visitor.person == person for session in self.sessions())

    def sessions(self) -> tuple[Session, ...]:
        """All open sessions."""
        return tuple(session for sessions in self._sessions.values() for session in sessions)

    def end_devices(self, devices: Collection[str], why: FrameProblem) -> None:
        """Close the sessions of these devices of invited people."""
        self._end(
            [one for one in self.sessions() if one.visitor.device and one.visitor.device in devices], why
        )

    def end_chat(self, chat: str, why: FrameProblem) -> None:
        """Close the sessions of a chat."""
        self._end(self._sessions.get(chat, ()), why)

    def tell(self, chat: str, frame: outgoing.Frame) -> None:
        """Send a frame to the sessions of a chat."""
        for session in tuple(self._sessions.get(chat, ())):
            session.deliver(OutgoingFrame(frame=frame))

    @staticmethod
    def _end(sessions: Iterable[Session], why: FrameProblem) -> None:
        for session in tuple(sessions):
            session.report(why, None)
            session.end(why.close_code)

    def answers(self, chat: str) -> tuple[LiveAnswer, ...]:
        """The answers in progress of `chat`."""
        return self._answers.answers(thread_of(chat))

    def answer(self, chat: str, message_id: str) -> LiveAnswer | None:
        """The answer in progress to a message of `chat`; None where there is none."""
        return next((one for one in self.answers(chat) if one.message_id == message_id), None)

    def event(self, thread: ThreadKey, event: PipelineEvent) -> None:
        """Send a live event of `thread` to its sessions that want it."""
        sessions: Collection[Session] = self._sessions.get(thread.chat, ())
        if type(event) in _OF_NODES:
            sessions = [session for session in sessions if session.nodes]
        else:
            self._answers.observe(thread, event)
        if not sessions:
            return
        if isinstance(event, LlmToken):
            frame = OutgoingFrame(frame=outgoing.token_frame(event), droppable=True)
        else:
            frame = OutgoingFrame(
                frame=outgoing.event_frame(event, self._rendered),
                line=_line_of(event) if event.is_terminal else None,
                entry_id=event.entry_id if isinstance(event, _WITH_ENTRY) else 0,
            )
        for session in tuple(sessions):
            session.deliver(frame)
            if session.watchers:
                for watcher in tuple(session.watchers):
                    watcher(event)

    def wants_nodes(self, thread: ThreadKey) -> bool:
        """Whether a session gets the events of the nodes of `thread`."""
        return self._with_nodes > 0 and any(one.nodes for one in self._sessions.get(thread.chat, ()))

    def entry(self, thread: ThreadKey, entry: TimelineEntry) -> None:
        """Send a recorded entry of `thread` to its sessions that do not have it yet."""
        sessions = self._sessions.get(thread.chat)
        if not sessions:
            return
        described = self._links.described(thread, entry.files) if entry.files else []
        frame = OutgoingFrame(
            frame=outgoing.entry_frame(entry, self._rendered, described),
            # A session that has the words from an event gets the files with the entry.
            line=None if described else (entry.message_id, entry.role),
            entry_id=entry.entry_id,
            is_entry=True,
        )
        for session in tuple(sessions):
            session.deliver(frame)


class ThreadSender:
    """The EventSender of one chat."""

    def __init__(self, hub: Hub, thread: ThreadKey) -> None:
        self._hub = hub
        self._thread = thread
        self.wants_nodes = partial(hub.wants_nodes, thread)
        """See `NodeSender`."""

    async def send_event(self, event: PipelineEvent) -> None:
        try:
            self._hub.event(self._thread, event)
        except Exception as error:  # noqa: BLE001 - a sender raises nothing: a reader's failure must not fail the turn
            _log.error("web: the event %s could not be sent: %s", event.type, type(error).__name__)


def _line_of(event: PipelineEvent) -> tuple[str, EntryRole] | None:
    """The entry that a terminal event shows; None if nothing of it is on record."""
    if isinstance(event, ResponseComplete) and event.entry_id:
        return (event.message_id, "assistant")
    if isinstance(event, ErrorEvent) and event.entry_id:
        return (event.message_id, "error")
    return None
