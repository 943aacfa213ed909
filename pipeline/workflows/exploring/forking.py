"""Copies of a run, so that it can continue differently from the same moment."""

from __future__ import annotations

from pipeline.graph.run.frames import Frame
from pipeline.graph.run.state import Run, Totals


def forked(run: Run) -> Run:
    """A run that changes apart from `run`. Both share states, updates and gates, which are never changed."""
    copies: dict[str, Frame] = {}
    root = _copied(run.root, None, copies)
    return Run(
        id=run.id,
        root=root,
        frames={name: copies[name] for name in run.frames},
        path=list(run.path),
        steps=run.steps,
        totals={
            label: Totals(one.executions, one.attempts, one.seconds, one.decision)
            for label, one in run.totals.items()
        },
        failures=list(run.failures),
        retries=run.retries,
        records=run.records,
        answered=set(run.answered),
        halting=run.halting,
        deferred=list(run.deferred),
        ended=run.ended,
    )


def _copied(frame: Frame, parent: Frame | None, copies: dict[str, Frame]) -> Frame:
    copy = Frame(
        id=frame.id,
        kind=frame.kind,
        graph=frame.graph,
        channels=frame.channels,
        prefix=frame.prefix,
        values=frame.values,
        parent=parent,
        beside=frame.beside,
        status=frame.status,
        node=frame.node,
        label=frame.label,
        inputs=frame.inputs,
        consecutive=frame.consecutive,
        last=frame.last,
        settled=frame.settled,
        end_reason=frame.end_reason,
        updates=frame.updates.copy(),
        gate=frame.gate,
        failure=frame.failure,
        join=frame.join,
        finished=frame.finished.copy(),
        attempts=frame.attempts,
        effects=frame.effects.copy(),
    )
    copy.plan = frame.plan
    children = copy.children
    for name, child in frame.children.items():
        children[name] = _copied(child, copy, copies)
    copies[frame.id] = copy
    return copy
