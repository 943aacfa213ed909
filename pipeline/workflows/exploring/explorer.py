"""Explore every order in which a workflow can go, up to a bound, and compare the engine with the document.

Breadth first, so that what is found is shortest. After each step the engine must be where the document says:
no branch lost, none twice, each agent's work done once, also where the process was killed after any record.
Every state must have a way to an end without a failure. Not explored: what agents do inside.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import field
from functools import partial
from typing import Final

from pipeline.domain.frozen import dataclass
from pipeline.graph.run.state import Run
from pipeline.workflows.compiling import MAX_STEPS
from pipeline.workflows.document import DECISIONS, Workflow
from pipeline.workflows.exploring.endless import endless_path
from pipeline.workflows.exploring.engine import Driven, ExploredEngine
from pipeline.workflows.exploring.findings import Counterexample, Explored, difference, never_ends
from pipeline.workflows.exploring.forking import forked
from pipeline.workflows.exploring.meaning import Circling, Meaning, Position
from pipeline.workflows.exploring.orders import asked, choices
from pipeline.workflows.exploring.outcomes import Outcomes
from pipeline.workflows.exploring.reading_runs import Branch, RunReader
from pipeline.workflows.exploring.reduction import Reduction

BOUND: Final = 2_000
"""States that are looked at unless another number is given."""
MAX_DEPTH: Final = 150
"""Steps in a row that are looked at."""
_GROWN: Final = 2
"""Times the number of nodes: a run with more branches has grown in a circle, and is not followed further."""
_AGAIN: Final = 3
"""A path with the same step so many times went round a circle by choice, not by the document's length."""
_KILLED: Final = "the process is killed and starts again"


@dataclass(slots=True, kw_only=True)
class _State:
    """One moment at which the run waits, for an agent or a person."""

    run: Run | None
    """None once it was looked at."""
    branches: tuple[Branch, ...]
    positions: Counter[Position]
    before: int
    """The state before it; -1 for none."""
    words: str
    depth: int
    following: list[tuple[int, str]] = field(default_factory=list)
    """The states that follow without a failure, each with the step that leads there."""
    ended: bool = False
    looked_at: bool = False


@dataclass(slots=True, kw_only=True)
class _Moment:
    """A run after one of its records, at which the process may be killed."""

    run: Run
    branches: tuple[Branch, ...]


class _Found(Exception):
    def __init__(self, what: str, before: int, *words: str) -> None:
        super().__init__(what)
        self.what, self.before, self.words = what, before, words


def explore(workflow: Workflow, bound: int = BOUND, *, every_order: bool = False) -> Explored:
    """Look at up to `bound` states of every run of a workflow. `every_order` also follows the orders that
    cannot change what follows, and each of the nodes that are alike, to prove that they change nothing."""
    path = endless_path(Meaning(workflow))
    if path:
        circle = path[path.index(path[-1]) :]
        what = f"this path never ends: {' -> '.join(circle)}; add a condition or an approval that leads out"
        found = Counterexample(what=what, steps=path[:-1], back_to=path.index(path[-1]))
        return Explored(states=0, depth=len(path) - 1, bounded=False, counterexample=found)
    explorer = _Explorer(workflow, bound, every_order=every_order)
    try:
        return explorer.explored()
    finally:
        explorer.close()


class _Explorer:
    def __init__(self, workflow: Workflow, bound: int, *, every_order: bool) -> None:
        self._bound = bound
        self._every_order = every_order
        self._meaning = Meaning(workflow, by_name=every_order)
        self._reader = RunReader(self._meaning)
        self._outcomes = Outcomes(self._meaning)
        self._reduction = None if every_order else Reduction(self._meaning)
        self._engine = ExploredEngine(workflow, self._passed)
        self._start = workflow.start.id
        self._nodes = len(workflow.nodes)
        self._bounded = False
        self._states: list[_State] = []
        self._known: dict[Hashable, int] = {}
        """What was seen -> its state; -1 for moments, which are no states."""
        self._moments: list[_Moment] = []
        self._waiting: deque[int] = deque()

    def close(self) -> None:
        self._engine.close()

    def explored(self) -> Explored:
        try:
            self._begin()
            found: Counterexample | None = None
            while self._waiting and found is None and len(self._states) < self._bound:
                at = self._waiting.popleft()
                found = None if self._every_order else self._dead_end(at)
                self._look_at(at)
            if self._every_order:
                found = self._without_end()
        except _Found as problem:
            steps = (*self._words_to(problem.before), *problem.words)
            found = Counterexample(what=problem.what, steps=steps)
        depth = max((state.depth for state in self._states), default=0)
        return Explored(
            states=len(self._states),
            depth=depth,
            bounded=self._bounded or bool(self._waiting),
            counterexample=found,
        )

    def _begin(self) -> None:
        meaning, several = self._meaning, len(self._meaning.messages) > 1
        for message in meaning.messages:
            words = f'{self._start}: the message is "{message}"' if several else self._start
            expected = self._then(-1, self._start, "", meaning.output(message), words)
            self._step(-1, words, partial(self._engine.begin, message), expected, ())

    def _look_at(self, at: int) -> None:
        state = self._states[at]
        state.looked_at = True
        run, state.run = state.run, None
        if run is None or state.ended:
            return
        if state.depth >= MAX_DEPTH or len(state.branches) > _GROWN * self._nodes:
            self._left_out(state)
            return
        working = choices(self._meaning, run, state.branches, every_order=self._every_order)
        new = list(working)
        if self._reduction is not None:
            new = self._reduction.new(run, state.branches, working)
        for branch in new:
            self._agent(at, run, branch)
        if working and not new:
            self._onward(at, run, working[0])
        if not working:
            for branch in asked(self._meaning, state.branches):
                self._approval(at, run, branch)

    def _left_out(self, state: _State) -> None:
        state.looked_at, self._bounded = False, True

    def _agent(self, at: int, run: Run, branch: Branch) -> None:
        """Every answer of an agent at work, and its failure."""
        for text in self._meaning.answers(branch.node):
            self._answer(at, run, branch, text)
        self._step(
            at,
            f"{branch.node} fails",
            partial(self._engine.answered, run, branch.inside, None),
            self._without(at, branch),
            (branch.inside,),
            good=False,
        )

    def _onward(self, at: int, run: Run, branch: Branch) -> None:
        """One answer of an agent whose answers were all followed from another state."""
        self._answer(at, run, branch, self._outcomes.onward((branch.node, branch.text)))

    def _answer(self, at: int, run: Run, branch: Branch, text: str) -> None:
        words = self._outcomes.words(branch.node, text)
        self._step(
            at,
            words,
            partial(self._engine.answered, run, branch.inside, text),
            self._without(at, branch) + self._then(at, branch.node, "", text, words),
            (branch.inside,),
        )

    def _approval(self, at: int, run: Run, branch: Branch) -> None:
        """Both answers to an approval, and none in time."""
        for choice in DECISIONS:
            words = f"{branch.node}: {choice}"
            self._step(
                at,
                words,
                partial(self._engine.decided, run, branch.gate, choice),
                self._without(at, branch) + self._then(at, branch.node, choice, branch.text, words),
                (),
            )
        if branch.expires:
            self._step(
                at,
                f"{branch.node}: no one answers in time",
                partial(self._engine.expired, run, branch.gate),
                self._without(at, branch),
                (),
                good=False,
            )

    def _without(self, at: int, branch: Branch) -> Counter[Position]:
        return self._states[at].positions - Counter({(branch.node, branch.text): 1})

    def _then(self, at: int, node: str, handle: str, text: str, words: str) -> Counter[Position]:
        """What follows a handle, as the document says."""
        try:
            return self._meaning.after(node, handle, text)
        except Circling as circle:
            raise _Found(never_ends(circle.path), at, words) from None

    def _step(
        self,
        at: int,
        words: str,
        drive: Callable[[], Driven],
        expected: Counter[Position],
        called: tuple[str, ...],
        *,
        good: bool = True,
    ) -> None:
        """Take one step from the state `at`, then kill the process at each new moment of it."""
        before = self._states[at].positions if at >= 0 else Counter[Position]()
        self._moments = []
        driven = drive()
        if driven.outcome is not None and driven.outcome.stop_reason == "max_steps":
            self._too_long(at, words)
            return
        self._check(driven, expected, called, at, words)
        self._add(driven, expected, at, words, good=good)
        while self._moments:
            moment = self._moments.pop()
            meant = self._reader.positions(moment.branches)
            if meant not in (before, expected):
                raise _Found(difference(expected, meant), at, words, _KILLED)
            resumed = self._engine.resumed(moment.run)
            self._check(resumed, meant, (), at, words, _KILLED)
            self._add(resumed, meant, at, f"{words}; {_KILLED}", good=False)

    def _too_long(self, at: int, words: str) -> None:
        """The limit of steps has ended the run: a mistake, unless the path went round a circle by choice."""
        if max(Counter(self._words_to(at)).values(), default=0) >= _AGAIN:
            self._left_out(self._states[at])
            return
        raise _Found(f"this path takes more than the {MAX_STEPS} steps that a run may take", at, words)

    def _passed(self, run: Run) -> None:
        """Note the run after a record, if it differs from all seen before."""
        branches = tuple(self._reader.branches(run))
        key = self._reader.alike(run, branches)
        if key not in self._known:
            self._known[key] = -1
            self._moments.append(_Moment(run=forked(run), branches=branches))

    def _check(
        self, driven: Driven, expected: Counter[Position], called: tuple[str, ...], at: int, *words: str
    ) -> None:
        run, outcome = driven.run, driven.outcome
        branches = tuple(self._reader.branches(run))
        found = self._reader.positions(branches)
        if found != expected:
            raise _Found(difference(expected, found), at, *words)
        if tuple(driven.called) != called:
            raise _Found("the work of an agent is not done exactly once", at, *words)
        if outcome is None:
            return
        status = ("failed" if run.failures else "completed") if run.root.at_rest else "paused"
        if outcome.status != status or (run.root.at_rest and expected):
            raise _Found(f"the run says that it is {outcome.status}, and it is {status}", at, *words)
        if status == "paused" and not outcome.gates:
            raise _Found("the run waits for no one and does not continue", at, *words)

    def _add(self, driven: Driven, positions: Counter[Position], at: int, words: str, *, good: bool) -> None:
        """Add the state in which a step ended, unless one like it is known."""
        run = driven.run
        branches = tuple(self._reader.branches(run))
        key = self._reader.alike(run, branches)
        number = self._known.get(key, -1)
        if number < 0:
            number = self._known[key] = len(self._states)
            depth = self._states[at].depth + 1 if at >= 0 else 1
            state = _State(
                run=run,
                branches=branches,
                positions=positions,
                before=at,
                words=words,
                depth=depth,
                ended=run.root.at_rest,
            )
            self._states.append(state)
            self._waiting.append(number)
        if good and at >= 0:
            self._states[at].following.append((number, words))

    def _dead_end(self, at: int) -> Counterexample | None:
        """A branch of the state that the document never lets end, with the circle that it goes in."""
        lost = next((one for one in self._states[at].positions if not self._outcomes.can_end(one)), None)
        if lost is None:
            return None
        circle, back = self._outcomes.circle(lost)
        before = self._words_to(at)
        what = f"this path never ends: {' -> '.join((*circle[back:], circle[back]))}"
        return Counterexample(what=what, steps=(*before, *circle), back_to=len(before) + back)

    def _without_end(self) -> Counterexample | None:
        """The first state from which no end can be reached, with its circle."""
        ends = [at for at, state in enumerate(self._states) if state.ended or not state.looked_at]
        leading: dict[int, list[int]] = {}
        for at, state in enumerate(self._states):
            for number, _ in state.following:
                leading.setdefault(number, []).append(at)
        reaching = set(ends)
        while ends:
            more = [at for at in leading.get(ends.pop(), ()) if at not in reaching]
            reaching.update(more)
            ends += more
        lost = next((at for at in range(len(self._states)) if at not in reaching), None)
        return None if lost is None else self._circle(lost)

    def _circle(self, at: int) -> Counterexample:
        path, steps = [at], [*self._words_to(at)]
        before = len(steps)
        while True:
            number, words = self._states[path[-1]].following[0]
            steps.append(words)
            if number in path:
                break
            path.append(number)
        back = before + path.index(number)
        circle = " -> ".join((*steps[back:], steps[back]))
        return Counterexample(what=f"this path never ends: {circle}", steps=tuple(steps), back_to=back)

    def _words_to(self, at: int) -> tuple[str, ...]:
        return tuple(self._words_back(at))[::-1]

    def _words_back(self, at: int) -> Iterator[str]:
        while at >= 0:
            yield self._states[at].words
            at = self._states[at].before
