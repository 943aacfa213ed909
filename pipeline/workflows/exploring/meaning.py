"""What a document says that comes after what, without the engine: the explorer compares both at each step.

A position is a node that takes time, an agent or an approval, with the output that it got. Everything between
two of them follows at once: conditions, and the ends of branches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import combinations
from typing import Final

from pipeline.workflows.document import (
    DECISIONS,
    MESSAGE,
    OTHERWISE,
    If,
    Workflow,
    WorkflowAgent,
    WorkflowApproval,
    filled,
    places,
)
from pipeline.workflows.exploring.symmetry import kinds_of

Position = tuple[str, str]
"""A node, and the output of the node before it."""
_PLAIN: Final = ("ok", "x", "7", "§", "¤¤")
"""Texts that hardly any condition matches."""
_MOST_COMBINED: Final = 6
"""Values of which every combination is tried; of more, each alone, every pair, and all."""


class Circling(Exception):
    """Conditions lead back to themselves with the same output; `path` are their nodes."""

    def __init__(self, path: tuple[str, ...]) -> None:
        super().__init__(" -> ".join(path))
        self.path = path


class Meaning:
    """One workflow."""

    def __init__(self, workflow: Workflow, *, by_name: bool = False) -> None:
        """With `by_name`, no two nodes are alike."""
        self.workflow = workflow
        self._answers: dict[str, tuple[str, ...]] = {}
        self._ifs: dict[str, tuple[If, ...]] = {}
        # An exploration asks for the same nodes and texts at each of its moments.
        self._at: dict[Position, Counter[Position]] = {}
        self._handles: dict[str, tuple[str, ...]] = {}
        self._compared_texts: dict[Position, tuple[tuple[int, str], ...]] = {}
        names = {name: at for at, name in enumerate(workflow.nodes)}
        self._kinds = names if by_name else kinds_of(workflow)

    def after(self, node: str, handle: str, text: str) -> Counter[Position]:
        """The positions that follow a handle. Raises Circling."""
        found: Counter[Position] = Counter()
        for target in dict.fromkeys(self.workflow.targets(node, handle)):
            found.update(self.at(target, text))
        return found

    def at(self, node: str, text: str, above: tuple[str, ...] = ()) -> Counter[Position]:
        """The positions of a branch that has come to `node`; not to be changed. Raises Circling."""
        known = self._at.get((node, text))
        if known is not None:
            return known
        one = self.workflow.nodes[node]
        if not isinstance(one, If):
            found = Counter({(node, text): 1})
        elif node in above:
            raise Circling((*above[above.index(node) :], node))
        else:
            found = Counter[Position]()
            for target in dict.fromkeys(self.workflow.targets(node, one.handle(text))):
                found.update(self.at(target, text, (*above, node)))
        self._at[node, text] = found
        return found

    def conditions_after(self, node: str, handle: str, text: str) -> int:
        """How many conditions a run passes before those positions. Only where `after` raises nothing."""
        found, waiting = 0, list(dict.fromkeys(self.workflow.targets(node, handle)))
        while waiting:
            name = waiting.pop()
            one = self.workflow.nodes[name]
            if isinstance(one, If):
                found += 1
                waiting += dict.fromkeys(self.workflow.targets(name, one.handle(text)))
        return found

    @cached_property
    def messages(self) -> tuple[str, ...]:
        """Messages that lead a run along every way that its start has."""
        given = self.workflow.start.initial_input
        if given and MESSAGE not in places(given):
            return ("hello",)
        ifs = self._compared(self.workflow.start.id)
        return _differing(_texts(ifs), ifs, given)

    def output(self, message: str) -> str:
        """The output of the start."""
        given = self.workflow.start.initial_input
        return filled(given, {MESSAGE: message}) if given else message

    def answers(self, agent: str) -> tuple[str, ...]:
        """Outputs of an agent that differ in where they lead."""
        found = self._answers.get(agent)
        if found is None:
            ifs = self._compared(agent)
            found = self._answers[agent] = _differing(_texts(ifs), ifs, "")
        return found

    def handles(self, node: str) -> tuple[str, ...]:
        """The handles by which a run can leave a node."""
        match self.workflow.nodes[node]:
            case If() as one:
                found = self._handles.get(node)
                if found is None:
                    found = tuple(dict.fromkeys(one.handle(text) for text in _texts((one,))))
                    self._handles[node] = found
                return found
            case WorkflowApproval():
                return DECISIONS
            case _:
                return ("",)

    def kind(self, node: str) -> int:
        """A number that nodes share which a run cannot tell apart; -1 for no node."""
        return self._kinds[node] if node else -1

    def compared(self, node: str, text: str) -> tuple[tuple[int, str], ...]:
        """What of an output counts at a node: the handles to which the conditions from there on lead. The
        same at nodes of one kind."""
        found = self._compared_texts.get((node, text))
        if found is None:
            ifs = {(self._kinds[one.id], one.handle(text)) for one in self._compared_at(node)}
            found = self._compared_texts[node, text] = tuple(sorted(ifs))
        return found

    @cached_property
    def asking(self) -> frozenset[str]:
        """The nodes from which a run can come to an approval."""
        found = {name for name, node in self.workflow.nodes.items() if isinstance(node, WorkflowApproval)}
        steps = [(one.source, one.target) for one in self.workflow.connections if not one.delegates]
        while more := {source for source, target in steps if target in found} - found:
            found |= more
        return frozenset(found)

    def _compared(self, node: str) -> tuple[If, ...]:
        """The conditions that compare the output of a node."""
        found: dict[str, If] = {}
        for one in self.workflow.connections:
            if one.source == node and not one.delegates:
                found |= {each.id: each for each in self._compared_at(one.target)}
        return tuple(found.values())

    def _compared_at(self, node: str) -> tuple[If, ...]:
        """The conditions from `node` on that compare the output with which a run comes to it."""
        found = self._ifs.get(node)
        if found is not None:
            return found
        ifs: dict[str, If] = {}
        seen: set[str] = set()
        waiting = [node]
        while waiting:
            name = waiting.pop()
            one = self.workflow.nodes[name]
            if name in seen or isinstance(one, WorkflowAgent):
                continue
            seen.add(name)
            if isinstance(one, If):
                ifs[name] = one
            waiting += [each.target for each in self.workflow.connections if each.source == name]
        found = self._ifs[node] = tuple(ifs[name] for name in sorted(ifs))
        return found


def _texts(ifs: Iterable[If]) -> Iterator[str]:
    """Texts that together lead to every handle of each condition, if any text does."""
    conditions = [condition for one in ifs for condition in one.conditions if condition.value.strip()]
    yield from _PLAIN
    yield from dict.fromkeys(condition.value.strip() for condition in conditions)
    contained = tuple(dict.fromkeys(each.value.strip() for each in conditions if each.operator == "contains"))
    yield from (f"{value} {_PLAIN[3]}" for value in contained)
    counts = range(2, len(contained) + 1) if len(contained) <= _MOST_COMBINED else (2, len(contained))
    for count in counts:
        yield from (f" {_PLAIN[3]} ".join(some) for some in combinations(contained, count))


def _differing(texts: Iterable[str], ifs: tuple[If, ...], around: str) -> tuple[str, ...]:
    """One text for each way through the conditions."""
    found: dict[tuple[str, ...], str] = {}
    for text in texts:
        output = filled(around, {MESSAGE: text}) if around else text
        found.setdefault(tuple(one.handle(output) for one in ifs), text)
    # What matches no condition first: it is the plainest.
    first = tuple(OTHERWISE for _ in ifs)
    return tuple(found[way] for way in sorted(found, key=lambda way: way != first))
