"""The records of a run: what each one says, and how a list of them is read back.

A record is a plain mapping. `do` says what happened; every other field is left out when it has its
default. The first record of a run also has its `head`.

    step      a node has ended: its update, its decision, and its routes (`to`; empty ends the frame)
    route     a gate was answered or has expired, and these are the routes
    enter     a subgraph begins
    retry     an attempt failed and another follows
    effect    something outside began, was done (with its result), or failed
    answer    a person answered a gate
    cancel    the run was cut off; the partial results of its nodes
    fail      a branch failed as a whole
    pause     the run was requested to halt, or waits
    snapshot  the whole run as data, so that earlier records need not be read
    resume    the records after the first `kept` could not be read and are void
    end       the run is over
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypedDict

from pipeline.domain.errors import GraphError
from pipeline.graph.run.outcome import Gate, RunFailure

TRAIL: Final = "trail"
"""The state's key under which a node writes what people read of its step later; it is kept when an ended
run's other updates are dropped."""
SHOWN_SECONDS: Final = 0.0001
"""Shorter times are left out of records."""


class Head(TypedDict):
    """The facts about a run in its first record."""

    run: str
    graph: str
    signature: str
    entry: str
    inputs: Mapping[str, Any]


class RunRecord(TypedDict, total=False):
    """Any record; which fields it has depends on `do`."""

    do: Literal[
        "step",
        "route",
        "enter",
        "retry",
        "effect",
        "answer",
        "cancel",
        "fail",
        "pause",
        "snapshot",
        "resume",
        "end",
    ]
    head: Head
    frame: str
    """The line of execution: left out for the run's own, else its path of branches and subgraphs."""
    node: str
    update: Mapping[str, Any]
    phase: Mapping[str, Any]
    """What the phase hook added to the update."""
    decision: str
    """Left out for `next`."""
    to: Sequence[str]
    inputs: Mapping[str, Mapping[str, Any]]
    """Target -> what it sees under mapped names."""
    seconds: float
    attempts: int
    """Left out for one."""
    error: Mapping[str, Any]
    at: float
    """Of a failure and of an answer: when, in Unix seconds."""
    skipped: bool
    gate: Mapping[str, Any]
    edge_errors: Sequence[str]
    missing: Sequence[str]
    key: str
    """Of an effect."""
    state: str
    result: Any
    choice: str
    note: str
    by: str
    kept: Any
    reason: str
    status: str
    run: Mapping[str, Any]


RawRecord: TypeAlias = Mapping[str, Any] | None
"""A stored record; None for one that could not be read."""


class RunUnreadable(GraphError):
    """The records of a run do not begin with a readable head, so the run cannot be resumed."""

    code = "run_unreadable"


class GraphChanged(GraphError):
    """The run was recorded with another version of the graph."""

    code = "graph_changed"


class RunEnded(GraphError):
    """The run is over and cannot be resumed."""

    code = "run_ended"


class GateRefused(GraphError):
    """A refused answer: the gate is unknown, answered or expired, or offers other choices."""

    code = "gate_refused"

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


def valid_records(records: Sequence[RawRecord]) -> list[RawRecord]:
    """The records without those that a later `resume` record declared void; None for an item that is not a
    record."""
    valid: list[RawRecord] = []
    for record in records:
        # The type of decoded records first: `isinstance` is slow for an abstract class.
        if type(record) is not dict and not isinstance(record, Mapping):
            valid.append(None)
        elif record.get("do") != "resume":
            valid.append(record)
        elif type(record.get("kept")) is int and 0 <= record["kept"] <= len(valid):
            del valid[record["kept"] :]
            if "head" in record:
                # Nothing was kept, so the run begins with this record.
                valid.append(record)
        else:
            valid.append(None)
    return valid


def has_ended(records: Sequence[RawRecord]) -> bool:
    """Whether the run in `records` has ended, successfully or not."""
    return any(record is not None and record.get("do") == "end" for record in records)


def head_of(records: Sequence[RawRecord]) -> Head:
    """The run's head. Raises RunUnreadable."""
    first = records[0] if records else None
    head = first.get("head") if first is not None else None
    if (
        not isinstance(head, Mapping)
        or not all(isinstance(head.get(key), str) for key in ("run", "signature", "entry"))
        or not isinstance(head.get("inputs"), Mapping)
    ):
        raise RunUnreadable("the first record of the run cannot be read, so the run has to start again")
    return {
        "run": head["run"],
        "graph": str(head.get("graph", "")),
        "signature": head["signature"],
        "entry": head["entry"],
        "inputs": head["inputs"],
    }


def about(frame: str, node: str, record: RunRecord) -> RunRecord:
    """`record` with its frame and node added."""
    record["node"] = node
    if frame:
        record["frame"] = frame
    return record


def plain_gate(gate: Gate) -> dict[str, Any]:
    """A gate for a record, without empty fields and without its node, which the record has."""
    plain: dict[str, Any] = {"id": gate.id}
    if gate.prompt:
        plain["prompt"] = gate.prompt
    if gate.options:
        plain["options"] = gate.options
    if gate.expires_at is not None:
        plain["expires_at"] = gate.expires_at
    if gate.allowed:
        plain["allowed"] = gate.allowed
    if gate.notes:
        plain["notes"] = True
    if gate.asks != "choice":
        plain["asks"] = gate.asks
    if gate.resumes:
        plain["resumes"] = True
    if gate.worded:
        plain["worded"] = gate.worded
    return plain


def read_gate(plain: Mapping[str, Any], node: str) -> Gate:
    """The gate of a record."""
    return Gate(
        id=plain["id"],
        node=node,
        prompt=plain.get("prompt", ""),
        options=tuple(plain.get("options", ())),
        expires_at=plain.get("expires_at"),
        allowed=tuple(plain.get("allowed", ())),
        notes=plain.get("notes", False),
        asks=plain.get("asks", "choice"),
        resumes=plain.get("resumes", False),
        worded=tuple(plain.get("worded", ())),
    )


def read_failure(plain: Mapping[str, Any]) -> RunFailure:
    """The failure of a record."""
    return RunFailure(
        node=plain["node"],
        code=plain["code"],
        message=plain["message"],
        attempts=plain.get("attempts", 1),
        permanent=plain.get("permanent", False),
    )
