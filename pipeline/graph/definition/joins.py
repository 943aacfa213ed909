"""Where parallel branches join, and which nodes they may run before: computed from successors alone.

It knows no nodes, edges or conditions, and does not check whether a fan-out is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property


class Joins:
    """The joins of one graph, given as node -> its targets, with `end` as the virtual end.

    Post-dominators come from the iterative algorithm of Cooper, Harvey and Kennedy, "A Simple, Fast
    Dominance Algorithm" (2001), on the reversed graph: linear in practice. Computed on first use and
    cached. A target that is not a node leads nowhere.
    """

    def __init__(self, successors: Mapping[str, tuple[str, ...]], end: str) -> None:
        self._successors = successors
        self._end = end
        self._joins: dict[frozenset[str], str] = {}
        self._branches: dict[tuple[str, str], frozenset[str]] = {}

    def of(self, targets: tuple[str, ...]) -> str:
        """The nearest node on every path from every target to the end; the end if there is none.

        It may be one of the targets. With a target that cannot reach the end, it is the end.
        """
        wanted = frozenset(targets)
        join = self._joins.get(wanted)
        if join is None:
            join = self._joins[wanted] = self._nearest_common(wanted)
        return join

    def branch(self, target: str, join: str) -> frozenset[str]:
        """The nodes that a branch beginning at `target` can run before `join`, without the end."""
        key = (target, join)
        found = self._branches.get(key)
        if found is None:
            found = self._branches[key] = self._reachable(target, join)
        return found

    def _nearest_common(self, targets: frozenset[str]) -> str:
        parents, order = self._tree
        if not targets or not targets <= order.keys():
            return self._end
        first, *others = targets
        for other in others:
            first = _meet(first, other, parents, order)
        return first

    def _reachable(self, target: str, join: str) -> frozenset[str]:
        outside = (join, self._end)
        seen: set[str] = set()
        waiting = [target]
        while waiting:
            node = waiting.pop()
            if node in outside or node in seen:
                continue
            seen.add(node)
            waiting.extend(self._successors.get(node, ()))
        return frozenset(seen)

    @cached_property
    def _tree(self) -> tuple[Mapping[str, str], Mapping[str, int]]:
        """The nearest post-dominator of every node that reaches the end, and their postorder numbers."""
        order = {node: number for number, node in enumerate(self._backward_postorder())}
        parents = {self._end: self._end}
        changed = True
        while changed:
            changed = False
            for node in reversed(order):
                if node == self._end:
                    continue
                nearest = ""
                for successor in self._successors[node]:
                    if successor in parents:
                        nearest = _meet(nearest, successor, parents, order) if nearest else successor
                if parents.get(node) != nearest:
                    parents[node] = nearest
                    changed = True
        return parents, order

    def _backward_postorder(self) -> list[str]:
        """The end and all nodes that reach it, in postorder of a traversal from the end against the edges."""
        sources: dict[str, list[str]] = {}
        for node, targets in self._successors.items():
            for target in targets:
                sources.setdefault(target, []).append(node)
        finished: list[str] = []
        seen = {self._end}
        stack = [(self._end, iter(sources.get(self._end, ())))]
        while stack:
            node, remaining = stack[-1]
            for source in remaining:
                if source not in seen:
                    seen.add(source)
                    stack.append((source, iter(sources.get(source, ()))))
                    break
            else:
                finished.append(node)
                stack.pop()
        return finished


def _meet(one: str, other: str, parents: Mapping[str, str], order: Mapping[str, int]) -> str:
    """The nearest common ancestor in the tree of post-dominators; ancestors have higher numbers."""
    while one != other:
        if order[one] < order[other]:
            one = parents[one]
        else:
            other = parents[other]
    return one
