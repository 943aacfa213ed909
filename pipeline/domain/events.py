"""Every event that the pipeline sends while it works, as one tagged union.

`type` is the event's name on the wire. Consumers `match` over `PipelineEvent` and end in
`assert_never`, so a new event cannot be forgotten. Exactly one of the terminal events
(`response_complete`, `error`) ends each message, or the turn that it has joined (`message_joined`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from operator import attrgetter
from typing import Any, ClassVar, Final, Literal, get_args

from pipeline.domain.frozen import dataclass

Decision = Literal["ALLOW", "BLOCK", "ESCALATE"]
EXPIRED: Final = "expired"
"""The choice of a question that was not answered in time; a person cannot choose it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    session_id: str
    message_id: str
    """The inbound message this event belongs to."""

    type: ClassVar[str] = ""
    is_terminal: ClassVar[bool] = False
    """Whether the event ends its message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(_Event):
    """The message left the queue and is being worked on."""

    type: ClassVar[str] = "turn_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageJoined(_Event):
    """A later message of the same person has joined the turn and is answered with it. It has no separate
    terminal event."""

    type: ClassVar[str] = "message_joined"
    joined: str
    """The id of the later message."""
    reply_handle: str = ""
    """What the channel needs to reply to it: from now on the answer is a reply to this message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptPending(_Event):
    """A voice note waits for transcription."""

    type: ClassVar[str] = "transcript_pending"
    ahead: int
    """Recordings before it in the queue."""
    eta_s: float
    """Estimated seconds until it is transcribed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptPartial(_Event):
    """The transcript of a long voice note's beginning; the rest is in progress."""

    type: ClassVar[str] = "transcript_partial"
    text: str
    """All words so far. Later ones begin with the same words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptReady(_Event):
    """A voice note was transcribed; the user sees the transcript before the answer."""

    type: ClassVar[str] = "transcript_ready"
    text: str
    language: str
    confidence: float
    """0 to 1, from the recogniser; a hint, not a probability of being right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStarted(_Event):
    """A graph node begins."""

    type: ClassVar[str] = "node_started"
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCompleted(_Event):
    """A graph node ended with a decision."""

    type: ClassVar[str] = "node_completed"
    node: str
    decision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted(_Event):
    """A step of a workflow begins, of which people read while it runs."""

    type: ClassVar[str] = "step_started"
    step: str
    """Its name, from the document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmToken(_Event):
    """A part of the answer as the model writes it. May be dropped for a slow reader."""

    type: ClassVar[str] = "llm_token"
    text: str
    offset: int
    """Characters of the answer before this part, so that a reader can detect a gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionStarted(_Event):
    """A tool call begins."""

    type: ClassVar[str] = "action_started"
    tool_name: str
    summary: str
    """A sentence for people: `Reading the file “notes.txt”`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShieldVerdict(_Event):
    """The security pipeline's decision on an action."""

    type: ClassVar[str] = "shield_verdict"
    tool_name: str
    decision: Decision
    tier: int
    confidence: float
    reasoning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionProgress(_Event):
    """A tool call that still runs has written output."""

    type: ClassVar[str] = "action_progress"
    tool_name: str
    summary: str
    """The sentence of its start."""
    line: str
    """The newest line of its output, shortened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionCompleted(_Event):
    """A tool call ended."""

    type: ClassVar[str] = "action_completed"
    tool_name: str
    success: bool
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequired(_Event):
    """An action waits for a person."""

    type: ClassVar[str] = "approval_required"
    interaction_id: str
    tool_name: str
    reasoning: str
    options: tuple[str, ...]
    timeout_s: float
    """Seconds until it expires; 0 for never."""
    paused: bool = False
    """The run is paused and the turn's reply contains the question. False while the turn itself waits for
    the answer."""
    command: str = ""
    """The command that an option can follow: nothing waits for the answer. Empty for a question of a turn."""
    asked_at: float = 0.0
    """When it was asked, in Unix seconds, if it is shown again later; 0 when it is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalResolved(_Event):
    """The waiting action was answered, or its time ran out."""

    type: ClassVar[str] = "approval_resolved"
    interaction_id: str
    choice: str
    """One of the options, or EXPIRED."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtrBlocked(_Event):
    """Off-the-record mode refused an action."""

    type: ClassVar[str] = "otr_blocked"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgentSpawned(_Event):
    """A sub-agent was started."""

    type: ClassVar[str] = "sub_agent_spawned"
    name: str
    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgentProgress(_Event):
    """A sub-agent reports."""

    type: ClassVar[str] = "sub_agent_progress"
    name: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgentCompleted(_Event):
    """A sub-agent finished its task."""

    type: ClassVar[str] = "sub_agent_completed"
    name: str
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgentFailed(_Event):
    """A sub-agent could not finish."""

    type: ClassVar[str] = "sub_agent_failed"
    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgentCancelled(_Event):
    """A sub-agent was stopped."""

    type: ClassVar[str] = "sub_agent_cancelled"
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """A step of reasoning that is stored with the answer."""

    stage: str
    """`reasoning` for words before a tool call, `tool_call` for a call and its result."""
    summary: str
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON data; for a tool call its `tool_name` and whether it was a `success`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseComplete(_Event):
    """Terminal: the answer is durable."""

    type: ClassVar[str] = "response_complete"
    is_terminal: ClassVar[bool] = True
    content: str
    thoughts: tuple[Thought, ...] = ()
    entry_id: int = 0
    """The answer's id in the thread's log; 0 if it is not logged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEvent(_Event):
    """Terminal: the message ended without an answer; `message` gives the reason as readable text."""

    type: ClassVar[str] = "error"
    is_terminal: ClassVar[bool] = True
    code: str
    message: str
    recoverable: bool
    """True when sending the message again may work."""
    entry_id: int = 0


PipelineEvent = (
    TurnStarted
    | MessageJoined
    | TranscriptPending
    | TranscriptPartial
    | TranscriptReady
    | NodeStarted
    | NodeCompleted
    | StepStarted
    | LlmToken
    | ActionStarted
    | ShieldVerdict
    | ActionProgress
    | ActionCompleted
    | ApprovalRequired
    | ApprovalResolved
    | OtrBlocked
    | SubAgentSpawned
    | SubAgentProgress
    | SubAgentCompleted
    | SubAgentFailed
    | SubAgentCancelled
    | ResponseComplete
    | ErrorEvent
)


_KINDS: Final[Mapping[str, type[PipelineEvent]]] = {kind.type: kind for kind in get_args(PipelineEvent)}
_NAMES: Final = {kind: ("type", *(one.name for one in fields(kind))) for kind in _KINDS.values()}
_WIRE: Final = {kind: (names, attrgetter(*names)) for kind, names in _NAMES.items()}
"""The names of the values of each kind of event, and what reads them."""


def event_to_wire(event: PipelineEvent) -> dict[str, Any]:
    """Plain JSON data: the event's `type` and fields."""
    names, values = _WIRE[type(event)]
    wire: dict[str, Any] = dict(zip(names, values(event), strict=True))
    if isinstance(event, ResponseComplete):
        wire["thoughts"] = [thought_to_plain(thought) for thought in event.thoughts]
    elif isinstance(event, ApprovalRequired):
        wire["options"] = list(event.options)
    return wire


def event_from_wire(wire: Mapping[str, Any]) -> PipelineEvent | None:
    """The event that `event_to_wire` wrote; None for a type that this version does not know. Ignores unknown
    fields. Raises KeyError or TypeError for a missing one."""
    kind = _KINDS.get(wire["type"])
    if kind is None:
        return None
    values = {one.name: wire[one.name] for one in fields(kind) if one.name in wire}
    if "thoughts" in values:
        values["thoughts"] = tuple(thought_from_plain(plain) for plain in values["thoughts"])
    if "options" in values:
        values["options"] = tuple(values["options"])
    return kind(**values)


def thought_from_plain(plain: Mapping[str, Any]) -> Thought:
    """What `thought_to_plain` wrote. Raises KeyError for anything else."""
    return Thought(stage=plain["stage"], summary=plain["summary"], detail=plain.get("detail", {}))


def thought_to_plain(thought: Thought) -> dict[str, Any]:
    """Plain JSON data, without an empty detail."""
    plain: dict[str, Any] = {"stage": thought.stage, "summary": thought.summary}
    if thought.detail:
        plain["detail"] = dict(thought.detail)
    return plain
