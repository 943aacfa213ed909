"""The public record of a run, from its engine's records: status, log and state.

It reads records and changes nothing. The record of a run in progress is right up to its newest record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from pipeline.domain.clock import utc_stamp
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.frozen_json import thaw
from pipeline.graph.definition.spec import END
from pipeline.graph.run.records import TRAIL, RawRecord, valid_records
from pipeline.workflows.compiling import RESULT, edited_labels, labels_of
from pipeline.workflows.document import EDIT, If, Workflow, WorkflowAgent, WorkflowApproval, verdict_of

RunStatus = Literal["pending", "running", "paused", "completed", "failed"]
SYSTEM: Final = "system"
"""The node of a log entry about the run as a whole."""
STOPPED: Final = "The run was stopped."
_EDITED = "User approved this step with another text."
_REASONS: Final[Mapping[str, str]] = {
    "max_steps": "The run was ended: it took more steps than a run may take.",
    "max_loops": "The run was ended: one step was repeated too often.",
    "timeout": "The run was ended: it took too long.",
    "aborted": STOPPED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One thing that happened."""

    at: float
    """Unix seconds."""
    node: str
    type: str
    """step_start, start_prompt, logic_check, wait_input, input_received, llm_response, llm_error, error,
    subagent_call_start, subagent_call_end or subagent_call_error."""
    content: str = ""
    queue_index: int | None = None
    """Of a wait_input: how many approvals are waited for before it."""

    def plain(self) -> dict[str, Any]:
        """The entry as JSON."""
        found: dict[str, Any] = {"timestamp": utc_stamp(self.at), "nodeId": self.node, "type": self.type}
        found["content"] = self.content
        return found if self.queue_index is None else {**found, "queueIndex": self.queue_index}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRun:
    """A run as people and other programs see it."""

    id: str
    status: RunStatus
    logs: tuple[LogEntry, ...]
    state: Mapping[str, Any]
    current_node: str | None = None
    """The approval that is waited for."""

    @property
    def waiting_for_input(self) -> bool:
        """Whether a person has to answer."""
        return self.status == "paused"

    def plain(self) -> dict[str, Any]:
        """The run as JSON."""
        return {
            "runId": self.id,
            "status": self.status,
            "logs": [entry.plain() for entry in self.logs],
            "state": thaw(self.state),
            "waitingForInput": self.waiting_for_input,
            "currentNodeId": self.current_node,
        }


def run_record(workflow: Workflow, records: Sequence[RawRecord]) -> WorkflowRun:
    """The record of the run in `records`, the engine's, oldest first."""
    reader = _Reader(workflow)
    for record in valid_records(records):
        if record is not None:
            reader.take(record)
    return reader.run()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    """An approval that is waited for."""

    node: str
    frame: str
    before: str
    """The output before it."""


class _Reader:
    def __init__(self, workflow: Workflow) -> None:
        self._workflow = workflow
        places = (*labels_of(workflow).items(), *edited_labels(workflow).items())
        self._ids = {label: name for name, label in places}
        self._logs: list[LogEntry] = []
        self._state: dict[str, Any] = {}
        self._previous: dict[str, str] = {"": ""}
        """By frame: the output of the node before."""
        self._inside: dict[str, str] = {}
        """The frame inside an agent -> the agent's own."""
        self._gates: dict[str, _Waiting] = {}
        self._deferred: dict[str, dict[str, str]] = {}
        self._halting = False
        self._id = ""
        self._status: RunStatus = "pending"
        self._at = 0.0

    def take(self, record: Mapping[str, Any]) -> None:
        """Read the next record."""
        self._id = record.get("head", {}).get("run", self._id)
        kind = record["do"]
        if kind in ("snapshot", "resume", "effect", "retry"):
            return
        self._status = "running"
        frame, label = record.get("frame", ""), record.get("node", "")
        match kind:
            case "enter":
                self._continues(frame)
                self._inside[f"{frame}/{label}"] = frame
            case "step":
                self._step(record, frame, label)
            case "answer":
                self._answer(record)
            case "route":
                self._route(record, frame, label)
            case "fail":
                self._failed(record, label)
            case "pause":
                self._status = "paused" if self._gates else "running"
            case "cancel":
                self._log(SYSTEM, "error", STOPPED)
                self._status = "failed"
            case "end":
                self._end(record)

    def run(self) -> WorkflowRun:
        """What was read so far."""
        state, waiting = dict(self._state), list(self._gates.values())
        if self._status != "paused":
            waiting = []
        if waiting:
            state["__approval_contexts__"] = {
                one.node: {"pre_approval_output": one.before} for one in waiting
            }
            state["__pending_approval_queue__"] = [one.node for one in waiting[1:]]
            state["pre_approval_output"] = waiting[0].before
        if self._deferred and self._status in ("running", "paused"):
            state["__deferred_node_queue__"] = list(self._deferred.values())
        return WorkflowRun(
            id=self._id,
            status=self._status,
            logs=tuple(self._logs),
            state=state,
            current_node=waiting[0].node if waiting else None,
        )

    def _step(self, record: Mapping[str, Any], frame: str, label: str) -> None:
        inner = frame in self._inside
        trail = record.get("update", {}).get(TRAIL)
        if trail is not None:
            self._tell(trail, self._inside.get(frame, frame), gate="gate" in record)
        if inner:
            return
        self._continues(frame)
        self._inside.pop(f"{frame}/{label}", None)
        node = self._ids.get(label, "")
        if isinstance(self._workflow.nodes.get(node), If):
            self._state[node] = self._previous.get(frame, "")
        if "error" in record:
            self._failed(record, label)
        if "gate" in record:
            before = self._previous.get(frame, "")
            self._gates[record["gate"]["id"]] = _Waiting(node=node, frame=frame, before=before)
            self._state["pre_approval_output"] = before
            self._halting = True
            return
        self._leads(record, frame)

    def _tell(self, trail: Mapping[str, Any], frame: str, *, gate: bool) -> None:
        node = trail["node"]
        for said in trail["log"]:
            content = said.get("content", trail.get("output", "") if said["type"] == "llm_response" else "")
            index = len(self._gates) if gate and said["type"] == "wait_input" else None
            self._at = said["at"]
            self._logs.append(
                LogEntry(at=said["at"], node=node, type=said["type"], content=content, queue_index=index)
            )
        if "output" in trail:
            self._previous[frame] = self._state[node] = self._state["previous_output"] = trail["output"]

    def _answer(self, record: Mapping[str, Any]) -> None:
        waiting = self._gates.pop(record["gate"]["id"], None)
        self._halting = False
        if waiting is None or not isinstance(self._workflow.nodes.get(waiting.node), WorkflowApproval):
            return
        self._at = record.get("at", self._at)
        self._state["previous_output"] = waiting.before
        if record["choice"] == EDIT:
            edited = {"decision": "approve", "note": "", "edited": record.get("note", "")}
            self._state[f"{waiting.node}_approval"] = {**edited, "before": waiting.before}
            self._log(waiting.node, "input_received", _EDITED)
            return
        found = verdict_of({"decision": record["choice"], "note": record.get("note", "")})
        decision, note = ("", "") if found is None else (found.decision, found.note)
        self._state[f"{waiting.node}_approval"] = {"decision": decision, "note": note}
        words = f"User {'approved' if decision == 'approve' else 'rejected'} this step."
        words += f" Feedback: {note}" if note else ""
        self._log(waiting.node, "input_received", words)

    def _route(self, record: Mapping[str, Any], frame: str, label: str) -> None:
        for gate, waiting in tuple(self._gates.items()):
            if waiting.frame == frame:
                del self._gates[gate]
                self._halting = False
        if "error" in record:
            self._failed(record, label)
        self._leads(record, frame)

    def _leads(self, record: Mapping[str, Any], frame: str) -> None:
        """Note where a frame goes, and what an open gate holds back of it."""
        targets = [target for target in record.get("to", ()) if target != END]
        for target in targets:
            following = frame if len(record["to"]) == 1 else f"{frame}/{target}"
            before = self._previous.setdefault(following, self._previous.get(frame, ""))
            if len(record["to"]) > 1:
                before = self._previous[following] = self._previous.get(frame, "")
            if self._halting and target != RESULT:
                self._deferred[following] = {
                    "nodeId": self._ids.get(target, target),
                    "previousOutput": before,
                }

    def _continues(self, frame: str) -> None:
        self._deferred.pop(frame, None)

    def _failed(self, record: Mapping[str, Any], label: str) -> None:
        node = self._ids.get(label, SYSTEM)
        kind = "llm_error" if isinstance(self._workflow.nodes.get(node), WorkflowAgent) else "error"
        self._at = record.get("at", self._at)
        self._log(node, kind, str(record["error"]["message"]))

    def _end(self, record: Mapping[str, Any]) -> None:
        self._status = "completed" if record.get("status") == "completed" else "failed"
        words = _REASONS.get(str(record.get("reason", "")), "")
        # A run that was cut off may be ended after that.
        if words and not (self._logs and self._logs[-1].content == words):
            self._log(SYSTEM, "error", words)

    def _log(self, node: str, kind: str, content: str) -> None:
        self._logs.append(LogEntry(at=self._at, node=node, type=kind, content=content))


def log_lines(run: WorkflowRun) -> Iterator[str]:
    """The log as text, one line for each entry."""
    for entry in run.logs:
        words = " ".join(entry.content.split())
        yield f"{entry.node:<16} {entry.type:<18} {words}".rstrip()
