"""Rebuild a run from its records, up to the newest readable state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.frozen_json import freeze_update
from pipeline.graph.definition.merging import folded
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.run.apply import apply
from pipeline.graph.run.records import (
    GraphChanged,
    Head,
    RawRecord,
    RunRecord,
    RunUnreadable,
    head_of,
    valid_records,
)
from pipeline.graph.run.snapshots import load
from pipeline.graph.run.state import Run

_UNFIT = (KeyError, TypeError, ValueError, AttributeError, GraphError)
"""What `apply` raises for a record that is damaged or belongs to another run."""


class Replayed(NamedTuple):
    """A run as it was when it stopped."""

    run: Run
    head: Head
    kept: int
    """The number of valid records."""
    void: int
    """The number of later records that could not be read, or follow one that could not."""


def seeded(graph: GraphSpec[Any, Any], base: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """A run's first state: `base` with `inputs` folded in through the channels."""
    return folded(base, graph.folds, freeze_update(inputs, "the inputs"))


def replay(
    graph: GraphSpec[Any, Any], records: Sequence[RawRecord], base: Mapping[str, Any], *, force: bool = False
) -> Replayed:
    """The run in `records`, up to the first unreadable one after the newest snapshot.

    Raises RunUnreadable without a readable first record that fits the graph, and GraphChanged when the run
    belongs to another version of the graph, unless `force`.
    """
    valid = valid_records(records)
    head = head_of(valid)
    if head["signature"] != graph.signature and not force:
        raise GraphChanged(
            f"run {head['run']} was recorded with graph {head['graph']} ({head['signature']}), and this is "
            f"{graph.name} ({graph.signature}): start it again, or resume it by force if"
            " the change does not matter"
        )
    if (head["entry"] or graph.entry) not in graph.specs:
        raise RunUnreadable(f"run {head['run']} begins at {head['entry']}, which graph {graph.name} has not")
    kept = len(valid)
    while True:
        run, reached = _rebuilt(graph, head, valid[:kept], base)
        if reached == kept:
            run.joined.clear()  # The listener was notified when they happened.
            return Replayed(run, head, kept, len(valid) - kept)
        kept = reached


def _rebuilt(
    graph: GraphSpec[Any, Any], head: Head, records: Sequence[RawRecord], base: Mapping[str, Any]
) -> tuple[Run, int]:
    """The run after as many of `records` as fit, from the newest snapshot on, and their number."""
    for at in range(len(records) - 1, 0, -1):
        record = records[at]
        if record is not None and record.get("do") == "snapshot":
            try:
                run = load(record["run"], head["run"], graph)
            except _UNFIT:
                continue
            return _applied(run, records, at + 1)
    run = Run.begin(head["run"], graph, seeded(graph, base, head["inputs"]), head["entry"] or graph.entry)
    return _applied(run, records, 0)


def _applied(run: Run, records: Sequence[RawRecord], start: int) -> tuple[Run, int]:
    for at in range(start, len(records)):
        record = records[at]
        if record is None:
            return run, at
        try:
            apply(run, cast("RunRecord", record))
        except _UNFIT:
            return run, at
    return run, len(records)
