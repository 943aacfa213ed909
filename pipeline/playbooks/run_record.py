"""The public record of a playbook's run, from its engine's records: status, events, outputs, checkpoints.

It reads records and changes nothing. The record of a run in progress is right up to its newest record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from pipeline.domain.clock import utc_stamp
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.frozen_json import thaw
from pipeline.graph.run.records import TRAIL, RawRecord, valid_records
from pipeline.playbooks.document import Playbook
from pipeline.playbooks.state import OUTPUTS, PLAYBOOK

RunStatus = Literal["pending", "running", "waiting", "completed", "failed", "aborted"]
_CATEGORIES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("agent", "tool-call"), "agent"),
    **dict.fromkeys(("router", "condition"), "routing"),
    **dict.fromkeys(("wait", "loop", "parallel", "merge", "sub-workflow"), "flow-control"),
    **dict.fromkeys(("user-input", "response", "transfer"), "io"),
}
"""By subtype, for the public record; all others are triggers."""
_SHOWN: Final = ("content", "result", "source", "target", "workflow", "transferredTo", "due")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened: a `workflow_…` or `node_…` event, or `edge_activated`."""

    at: float
    """Unix seconds."""
    type: str
    node: str = ""
    within: str = ""
    """The number of the playbook's instance: those of sub-workflows have others."""
    details: Mapping[str, Any]

    @property
    def text(self) -> str:
        """What it says: of an edge where it leads, else a content or a result."""
        if "source" in self.details:
            return f"{self.details['source']} -> {self.details['target']}"
        return str(self.details.get("content", self.details.get("result", "")))

    def plain(self) -> dict[str, Any]:
        """The event as JSON."""
        found: dict[str, Any] = {"timestamp": utc_stamp(self.at), "type": self.type}
        found |= {"nodeId": self.node} if self.node else {}
        return found | dict(self.details)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What is on record after a node has completed."""

    node: str
    label: str
    subtype: str
    sequence: int
    """Its number in the run, from 1."""
    output: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookRun:
    """A run as people and other programs see it."""

    id: str
    workflow: str
    status: RunStatus
    events: tuple[Event, ...] = ()
    current: tuple[str, ...] = ()
    """The nodes at work."""
    outputs: Mapping[str, Mapping[str, Any]]
    """The newest output of each node; those of sub-workflows under `file/node`."""
    checkpoints: tuple[Checkpoint, ...] = ()
    failure: str = ""
    left: tuple[Mapping[str, str], ...] = ()
    """The playbooks that a transfer has ended, each with the one that it led to."""

    @property
    def completed(self) -> tuple[str, ...]:
        """The nodes that have completed, each once, in that order."""
        done = (event.node for event in self.events if event.type == "node_completed")
        return tuple(dict.fromkeys(done))

    def plain(self) -> dict[str, Any]:
        """The run as JSON."""
        return {
            "executionId": self.id,
            "workflowId": self.workflow,
            "status": self.status,
            "currentNodeIds": list(self.current),
            "completedNodeIds": list(self.completed),
            "nodeOutputs": {node: _plain_output(node, one) for node, one in self.outputs.items()},
            "failure": self.failure,
            "lastCompletedWorkflow": thaw(self.left[-1]) if self.left else None,
            "events": [event.plain() for event in self.events],
            "checkpoints": [
                {
                    "executionId": self.id,
                    "workflowId": self.workflow,
                    "nodeId": one.node,
                    "label": one.label,
                    "subtype": one.subtype,
                    "sequence": one.sequence,
                    "nodeOutput": _plain_output(one.node, one.output),
                }
                for one in self.checkpoints
            ],
        }


def _plain_output(node: str, output: Mapping[str, Any]) -> dict[str, Any]:
    """An output as JSON."""
    found: dict[str, Any] = {"nodeId": node.rpartition("/")[2]}
    found["category"] = _CATEGORIES.get(str(output.get("subtype", "")), "trigger")
    for key, value in output.items():
        if key == "at":
            found["completedAt"] = utc_stamp(value)
        else:
            found["threadId" if key == "thread" else key] = thaw(value)
    return found


def playbook_record(playbook: Playbook, records: Sequence[RawRecord]) -> PlaybookRun:
    """The record of the run in `records`, the engine's, oldest first."""
    reader = _Reader(playbook)
    for record in valid_records(records):
        if record is not None:
            reader.take(record)
    return reader.run()


class _Reader:
    def __init__(self, playbook: Playbook) -> None:
        self._playbook = playbook
        self._events: list[Event] = []
        self._outputs: dict[str, Mapping[str, Any]] = {}
        self._checkpoints: list[Checkpoint] = []
        self._instances: dict[str, str] = {}
        self._plain: Mapping[str, Any] = {}
        self._status: RunStatus = "pending"
        self._failure = ""
        self._id = ""

    def take(self, record: Mapping[str, Any]) -> None:
        """Read the next record."""
        self._id = record.get("head", {}).get("run", self._id)
        kind = record["do"]
        if kind in ("snapshot", "resume", "effect", "retry"):
            return
        if kind == "pause":
            self._status = "waiting" if record.get("reason") == "waiting_for_user" else "running"
        elif kind == "cancel" or (kind == "end" and record.get("reason") == "aborted"):
            self._aborted()
        elif kind == "end":
            self._ended(record)
        else:
            self._status = "running"
            self._step(record.get("update", {}))

    def _step(self, update: Mapping[str, Any]) -> None:
        if PLAYBOOK in update:
            self._plain = update[PLAYBOOK]
            self._instances |= {
                name: str(instance["of"]) for name, instance in self._plain["instances"].items()
            }
        self._outputs |= {self._name(key): found for key, found in update.get(OUTPUTS, {}).items()}
        # What the engine's own nodes wrote in an old version is no trail of ours.
        for said in update.get(TRAIL, {}).get("events", ()):
            self._tell(said)

    def _tell(self, said: Mapping[str, Any]) -> None:
        node, within = str(said.get("node", "")), str(said.get("in", ""))
        details = {key: said[key] for key in _SHOWN if said.get(key) not in (None, "")}
        event = Event(at=said["at"], type=said["type"], node=node, within=within, details=details)
        self._events.append(event)
        if event.type == "node_completed":
            found = self._outputs.get(self._name(f"{within}|{node}"), {"result": said.get("result", "")})
            self._checkpoints.append(
                Checkpoint(
                    node=node,
                    label=str(found.get("label", node)),
                    subtype=str(found.get("subtype", "transfer")),
                    sequence=len(self._checkpoints) + 1,
                    output={**found, "result": said.get("result", "")},
                )
            )

    def _name(self, key: str) -> str:
        within, _, node = key.partition("|")
        of = self._instances.get(within, "")
        return f"{of}/{node}" if of else node

    def _aborted(self) -> None:
        at = self._events[-1].at if self._events else 0.0
        self._events.append(Event(at=at, type="workflow_aborted", details={}))
        self._status = "aborted"

    def _ended(self, record: Mapping[str, Any]) -> None:
        self._status = "completed" if record.get("status") == "completed" else "failed"
        self._failure = str(self._plain.get("failure", "")) if self._plain else ""
        if self._status == "failed" and not self._failure:
            self._failure = str(record.get("reason", ""))

    def run(self) -> PlaybookRun:
        """What was read so far."""
        work = self._plain.get("work", ()) if self._status in ("running", "waiting") else ()
        return PlaybookRun(
            id=self._id,
            workflow=self._playbook.name,
            status=self._status,
            events=tuple(self._events),
            current=tuple(dict.fromkeys(str(item["node"]) for item in work)),
            outputs=self._outputs,
            checkpoints=tuple(self._checkpoints),
            failure=self._failure,
            left=tuple(dict(one) for one in self._plain.get("left", ())),
        )


def event_lines(run: PlaybookRun) -> Iterator[str]:
    """The events as text, one line for each."""
    for event in run.events:
        words = " ".join(event.text.split())
        yield f"{event.node or 'workflow':<16} {event.type:<18} {words}".rstrip()
