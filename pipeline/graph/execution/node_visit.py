"""One execution of one node: the state it sees, and the checks of its result."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from pipeline.domain.errors import GraphError, ParlourError
from pipeline.graph.definition.decisions import Next, NodeDecision, NodeResult, State
from pipeline.graph.definition.frozen_json import freeze_update
from pipeline.graph.definition.merging import ANSWERS, RESERVED
from pipeline.graph.definition.structure import NodeSpec
from pipeline.graph.execution.control import asked_to_stop
from pipeline.graph.run.frames import NO_INPUTS, Frame
from pipeline.graph.run.outcome import RunFailure


@dataclass(slots=True)
class NodeExecution:
    """The result of one execution of a node, all attempts included."""

    update: Mapping[str, Any]
    """Frozen; empty after a failure."""
    decision: NodeDecision = Next()  # noqa: RUF009 - a frozen value without fields
    failure: RunFailure | None = None
    attempts: int = 1
    seconds: float = 0.0
    after: Mapping[str, Any] | None = None
    """The state after a subgraph, where it was computed already."""
    missing: tuple[str, ...] = ()


_UPDATE: Final = "the update"


class BadResult(GraphError):
    """A node's result that is refused; another attempt would not help."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[misc]  # one class, several codes


def view_of(frame: Frame, *, repeated: bool) -> State:
    """The state as the frame's next node sees it: its reads and inputs, without stale nullable keys."""
    if frame.plan.sees_all and not frame.inputs:
        return MappingProxyType(frame.values)
    spec = frame.plan.spec
    hidden = spec.nullable if repeated else ()
    values = frame.values
    if hidden or frame.inputs:
        values = {key: value for key, value in values.items() if key not in hidden} | dict(frame.inputs)
    if spec.reads is None:
        return MappingProxyType(values)
    allowed = {*spec.reads, *frame.inputs, ANSWERS}
    return DeclaredReads(
        frame.label, {key: value for key, value in values.items() if key in allowed}, allowed
    )


def missing_reads(reads: tuple[str, ...], view: State) -> tuple[str, ...]:
    """Declared reads that are absent; the run is warned and continues."""
    return tuple(key for key in reads if key not in view)


def take(frame: Frame, result: NodeResult) -> Mapping[str, Any]:
    """The node's update, checked and frozen; empty when the node reports an error.

    Raises BadResult that names the node and the key.
    """
    label, plan = frame.label, frame.plan
    if type(result) is not NodeResult:
        raise BadResult("bad_result", f"node {label} returned {type(result).__name__}, not a NodeResult")
    if result.error:
        return NO_INPUTS
    try:
        update = freeze_update(result.update, _UPDATE)
    except GraphError as error:
        raise BadResult("bad_update", f"{_UPDATE} of node {label}{str(error)[len(_UPDATE) :]}") from None
    if not RESERVED.isdisjoint(update) if plan.writes is None else not update.keys() <= plan.writes:
        refuse_unwritable(label, plan.spec, update)
    if plan.required:
        check_complete(label, plan.required, update)
    return update


def refuse_unwritable(label: str, spec: NodeSpec[Any, Any], update: Mapping[str, Any]) -> None:
    """Refuse keys that the node may not write. Raises BadResult."""
    if not RESERVED.isdisjoint(update):
        key = min(update.keys() & RESERVED)
        raise BadResult("undeclared_write", f"node {label} wrote {key}, which only the engine writes")
    undeclared = sorted(update.keys() - set(spec.writes)) if spec.writes is not None else []
    if undeclared:
        words = f"node {label} wrote {', '.join(undeclared)}, not declared in writes"
        raise BadResult("undeclared_write", words)


def check_complete(label: str, required: tuple[str, ...], update: Mapping[str, Any]) -> None:
    """Refuse an update without one of the declared keys that are not nullable. Raises BadResult."""
    missing = [key for key in required if update.get(key) is None]
    if missing:
        raise BadResult("missing_output", f"node {label} did not write {', '.join(missing)}")


def node_error(label: str, error: Exception | asyncio.CancelledError) -> Exception:
    """What a node raised, as the node's error.

    A requested cancellation of the task is raised again. Any other cancellation ended something that the
    node waited for.
    """
    if isinstance(error, Exception):
        return error
    if asked_to_stop():
        raise error
    return GraphError(f"node {label}: something that it waited for was cancelled")


def failure_of(label: str, error: Exception, attempts: int) -> RunFailure:
    """The exception as a failure of the node."""
    return RunFailure(
        node=label,
        code=error.code if isinstance(error, ParlourError) else "node_error",
        message=str(error) or type(error).__name__,
        attempts=attempts,
        permanent=getattr(error, "permanent", False) is True,
        exception=error,
    )


class DeclaredReads(Mapping[str, Any]):
    """A view of the state that raises a readable error for a key that the node has not declared."""

    def __init__(self, label: str, values: Mapping[str, Any], allowed: set[str]) -> None:
        self._label = label
        self._values = values
        self._allowed = allowed

    def __getitem__(self, key: str) -> Any:
        if key not in self._allowed:
            raise BadResult("undeclared_read", f"node {self._label} reads {key}, not declared in reads")
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values
