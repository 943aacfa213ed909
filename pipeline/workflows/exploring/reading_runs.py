"""What a run of the engine means in terms of its document, and which runs continue alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from typing import Final, Literal

from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.merging import ANSWERS
from pipeline.graph.run.frames import Frame
from pipeline.graph.run.state import Run
from pipeline.workflows.compiling import RESULT, labels_of
from pipeline.workflows.exploring.engine import WORK
from pipeline.workflows.exploring.meaning import Meaning, Position
from pipeline.workflows.steps import PREVIOUS

Doing = Literal["next", "at work", "worked", "failed", "asking", "decided"]
_GONE: Final[Counter[Position]] = Counter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One line of execution that has not ended."""

    frame: str
    """The engine's name of it."""
    node: str
    """The node's id in the document; empty for what shows a result."""
    doing: Doing
    """next: about to begin, or held back. at work, worked, failed: an agent, with its answer or error on
    record in the last two. asking, decided: an approval, before and after its answer."""
    text: str = ""
    """The output of the node before; of an agent that has worked, its own."""
    inside: str = ""
    """The engine's name of the inside of an agent at work."""
    gate: str = ""
    expires: bool = False
    choice: str = ""
    began: bool = False
    """A node of this branch has ended before: an open approval holds such a branch back."""


class RunReader:
    """Reads the runs of one workflow."""

    def __init__(self, meaning: Meaning) -> None:
        self._meaning = meaning
        labels = labels_of(meaning.workflow)
        self._ids = {label: name for name, label in labels.items()} | {RESULT: ""}

    def branches(self, run: Run) -> Iterator[Branch]:
        """The branches that have not ended, in the engine's order."""
        for frame in run.frames.values():
            if frame.kind == "subgraph" or frame.at_rest or frame.status == "split":
                continue
            yield self._branch(frame)

    def positions(self, branches: Iterator[Branch] | tuple[Branch, ...]) -> Counter[Position]:
        """Where the run is in its document: what has happened counts, on record or not yet followed. Raises
        Circling."""
        found: Counter[Position] = Counter()
        for branch in branches:
            found.update(self._positions(branch))
        return found

    def alike(self, run: Run, branches: tuple[Branch, ...]) -> Hashable:
        """The same for two runs that can only continue alike: the number of steps, the names of
        branches and of nodes that are alike, and what the past has written do not count."""
        places: Mapping[str, int] = {name: at for at, name in enumerate(run.deferred)}
        entries = sorted(
            (
                self._meaning.kind(branch.node),
                branch.doing,
                self._compared(branch),
                branch.choice,
                branch.began,
                places.get(branch.frame, -1),
            )
            for branch in branches
        )
        return run.halting, bool(run.failures), run.root.at_rest, tuple(entries)

    def _compared(self, branch: Branch) -> tuple[Hashable, ...]:
        """What of its text counts for a branch."""
        if branch.doing == "worked":
            return (branch.text,)
        return self._meaning.compared(branch.node, branch.text) if branch.node else ()

    def _branch(self, frame: Frame) -> Branch:
        node = self._ids[frame.node]
        text = str(frame.values.get(PREVIOUS, ""))
        match frame.status:
            case "inside":
                return _agent(frame, node, text)
            case "paused" if frame.gate is not None:
                expires = frame.gate.expires_at is not None
                gate = frame.gate.id
                return Branch(
                    frame=frame.id, node=node, doing="asking", text=text, gate=gate, expires=expires
                )
            case "answered":
                choice = str(frame.values[ANSWERS][frame.label]["choice"])
                return Branch(frame=frame.id, node=node, doing="decided", text=text, choice=choice)
            case _:
                began = bool(frame.last)
                return Branch(frame=frame.id, node=node, doing="next", text=text, began=began)

    def _positions(self, branch: Branch) -> Counter[Position]:
        meaning = self._meaning
        match branch.doing:
            case "failed":
                return _GONE
            case "worked":
                return meaning.after(branch.node, "", branch.text)
            case "decided":
                return meaning.after(branch.node, branch.choice, branch.text)
            case "next" if not branch.node:
                return _GONE
            case "next":
                return meaning.at(branch.node, branch.text)
            case _:
                return Counter({(branch.node, branch.text): 1})


def _agent(frame: Frame, node: str, text: str) -> Branch:
    """A branch whose node is an agent that has begun."""
    child = frame.children[frame.node]
    if child.status == "failed":
        return Branch(frame=frame.id, node=node, doing="failed", inside=child.id)
    state, result = child.effects.get(WORK, ("", None))
    if child.at_rest or state == "done":
        text = str(child.values[PREVIOUS] if child.at_rest else result)
        return Branch(frame=frame.id, node=node, doing="worked", text=text, inside=child.id)
    return Branch(frame=frame.id, node=node, doing="at work", text=text, inside=child.id)
