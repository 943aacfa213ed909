"""The kinds `condition`, `question` and `delay`: they choose, ask a person, and wait."""

from __future__ import annotations

from typing import Any, ClassVar

from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import End, Goto, NodeResult, Pause, State
from pipeline.graph.definition.expressions import Expression, expression_problem
from pipeline.graph.definition.spec import END, NodeSpec
from pipeline.graph.definition.structure import GraphStructure
from pipeline.graph.documents.fields import Fields
from pipeline.graph.execution.step import current_step
from pipeline.nodes.failures import ConditionFailed
from pipeline.nodes.templates import Template, template_field
from pipeline.runtime.context import RunContext

MAX_DELAY_S = 3_600.0
MAX_OPTIONS = 10


def condition_kind(given: Fields) -> NodeSpec[RunContext]:
    """Jumps to the node `then` where the expression `if` holds, else to `else`, by default `end`."""
    text = given.text("if")
    problem = expression_problem(text) if text else ""
    if problem:
        given.note("if", problem)
    choice = _Condition(
        holds=Expression.parse_or_none(text),
        then=given.text("then"),
        otherwise=given.text("else", default=END),
    )
    targets = tuple(dict.fromkeys((choice.then, choice.otherwise)))
    return NodeSpec(run=choice, writes=(), goes_to=targets)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Condition:
    holds: Expression | None
    then: str
    otherwise: str

    async def __call__(self, state: State, context: RunContext) -> NodeResult:
        holds, problem = (False, "") if self.holds is None else self.holds.evaluate({}, state)
        if problem and context.fails_closed:
            raise ConditionFailed(f"The condition could not be checked: {problem}")
        target = self.then if holds else self.otherwise
        return NodeResult(decision=End() if target == END else Goto(target))


def question_kind(given: Fields) -> NodeSpec[RunContext]:
    """Asks the person the template `prompt` and waits. `options` are the choices, by default `continue`
    alone; after `expires_s` seconds the node fails. The answer is in the state under
    `answers.NODE.choice`."""
    question = _Question(
        prompt=template_field(given, "prompt"),
        options=given.texts("options"),
        expires_s=given.optional_number("expires_s", default=None),
    )
    if len(question.options) > MAX_OPTIONS or len(set(question.options)) < len(question.options):
        given.note("options", f"must be at most {MAX_OPTIONS}, each given once")
    if question.expires_s is not None and question.expires_s <= 0:
        given.note("expires_s", "must be above 0")
    return NodeSpec(run=question, writes=(), goes_to=())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    asks_a_person: ClassVar[bool] = True
    prompt: Template
    options: tuple[str, ...]
    expires_s: float | None

    async def __call__(self, state: State, context: RunContext) -> NodeResult:
        prompt = context.redactor.text(self.prompt.render(state))
        return NodeResult(decision=Pause(prompt=prompt, options=self.options, expires_s=self.expires_s))


def asks_a_person(graph: GraphStructure[Any]) -> bool:
    """Whether a node that asks a person is in the graph or in one of its subgraphs: its function says so by
    an attribute `asks_a_person`."""
    return any(
        getattr(spec.run, "asks_a_person", False)
        or (spec.subgraph is not None and asks_a_person(spec.subgraph))
        for spec in graph.specs.values()
    )


def delay_kind(given: Fields) -> NodeSpec[RunContext]:
    """Waits `seconds`, at most an hour. A restart does not begin the wait again."""
    seconds = given.number("seconds", default=0.0)
    if not 0 < seconds <= MAX_DELAY_S:
        given.note("seconds", f"must be above 0 and at most {MAX_DELAY_S:.0f}")
    return NodeSpec(run=_Delay(seconds=seconds), writes=(), goes_to=())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Delay:
    seconds: float

    async def __call__(self, _state: State, context: RunContext) -> NodeResult:
        clock = context.clock

        async def now() -> float:
            return clock.now()

        began = float(await current_step().effect("begin", now, repeatable=True))
        left = min(began + self.seconds - clock.now(), self.seconds)
        if left > 0:
            # The wait counts neither against the turn's deadline nor against the turns that run at once.
            async with context.scope.waiting():
                await clock.sleep(left)
        return NodeResult()
