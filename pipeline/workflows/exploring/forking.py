"""Copies of a run, so that it can continue differently from the same moment."""

from __future__ import annotations

from typing import Final

from pipeline.graph.run.frames import Frame
from pipeline.graph.run.state import Run, Totals

_SLOTS: Final = tuple(Frame.__slots__)


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
    copy: Frame = Frame.__new__(Frame)
    for name in _SLOTS:
        setattr(copy, name, getattr(frame, name))
    copy.parent = parent
    copy.updates, copy.finished, copy.effects = list(frame.updates), list(frame.finished), dict(frame.effects)
    copy.children = {name: _copied(child, copy, copies) for name, child in frame.children.items()}
    copies[frame.id] = copy
    return copy
