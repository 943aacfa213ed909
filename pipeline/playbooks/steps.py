"""The nodes of a playbook's graph other than agents: advance, tools, decisions, questions, waits, end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pipeline.domain.chat import ToolCall
from pipeline.domain.errors import ModelError, TurnFailed
from pipeline.domain.frozen import dataclass
from pipeline.domain.marking import unmarked
from pipeline.graph.definition.decisions import NodeResult, Pause, State
from pipeline.graph.definition.merging import ANSWERS
from pipeline.graph.definition.spec import NodeSpec
from pipeline.graph.execution.step import current_step
from pipeline.graph.run.records import TRAIL
from pipeline.nodes.failures import ConditionFailed, StepFailed
from pipeline.nodes.intake_steps import MESSAGE
from pipeline.nodes.templates import marked
from pipeline.nodes.tools import load_groups
from pipeline.playbooks.asking import route_by, yes_or_no
from pipeline.playbooks.document import (
    Loop,
    Playbook,
    PlaybookCondition,
    PlaybookToolCall,
    PlaybookWait,
    Router,
    UserInput,
    title,
)
from pipeline.playbooks.moves import advance, decide, next_due, wake
from pipeline.playbooks.progress import Item, Progress
from pipeline.playbooks.state import (
    ASKED_BY,
    DONE,
    ONCE,
    OUTPUTS,
    PLAYBOOK,
    STARTED,
    Labels,
    PlaybookPlace,
    done,
    progress_of,
)
from pipeline.runtime.context import RunContext
from pipeline.workflows.steps import SOURCES

QUESTION: Final = "question"
"""The node that asks the person what a blocked agent needs."""
FINISH: Final = "finish"
ADVANCE: Final = "advance"
_WRONG: Final = "Something went wrong inside the step."
_SHOWN_CHARS = 300
_OFF_THE_RECORD: Final = "Off the record nothing is stored, so the playbook cannot wait here."


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """Reads what the engine has done, and advances until the engine is needed again."""

    playbook: Playbook
    labels: Labels

    async def __call__(self, state: State, context: RunContext) -> NodeResult:
        for source in state.get(SOURCES, ()):
            context.scope.foreign.note(source)
        run = progress_of(state, self.playbook, context) if PLAYBOOK in state else self._begun(state, context)
        taken = self._read(run, state, shown=state.get(ASKED_BY) != context.scope.message_id)
        advance(run)
        for text in run.said:
            await context.on_text(f"{context.redactor.text(text)}\n\n")
        plain = run.plain
        if not run.is_over and not plain["running"]:
            run.end("failed", "The playbook came to no end.")
        return NodeResult(
            update={
                PLAYBOOK: plain,
                OUTPUTS: run.outputs,
                DONE: taken,
                TRAIL: {"events": run.events},
                SOURCES: [],
            }
        )

    def _begun(self, state: State, context: RunContext) -> Progress:
        given = state.get(STARTED, {}).get("message") or state.get(MESSAGE, "")
        run = Progress.begin(self.playbook, str(given), now=context.clock.now())
        # What the agent has said before it started the playbook was shown already.
        said = str(state.get("agent", {}).get("answer", ""))
        run.plain["unsaid"] += [said] if said else []
        return run

    def _read(self, run: Progress, state: State, *, shown: bool) -> dict[str, Any]:
        """Take what became of the items that the engine had. Returns what need not be kept of it. `shown`:
        whether the person got what was said before the newest question or wait."""
        taken: dict[str, Any] = {}
        asked = False
        for number in run.plain["running"]:
            item = run.item(number)
            if item is None:
                continue
            if item["is"] == "running":
                found = state.get(DONE, {}).get(str(number), {})
                taken[str(number)] = {}
                _settle_work(run, item, found)
            else:
                asked = True
                self._answered(run, item, state)
        run.plain["running"] = []
        if asked and shown:
            run.plain["unsaid"] = []
        wake(run)
        return taken

    def _answered(self, run: Progress, item: Item, state: State) -> None:
        blocked = item["is"] == "blocked"
        label = QUESTION if blocked else self.labels[run.instance(item)["of"], item["node"]]
        choice = str(state.get(ANSWERS, {}).get(label, {}).get("choice", ""))
        if item["is"] == "waiting" or not choice:
            # The engine's clock may differ by a moment from the time of the record.
            run.now = max(run.now, next_due(run) or 0.0)
            return
        if blocked:
            item["answers"] = [*item.get("answers", ()), [item["question"], choice]]
            item["is"] = "ready"
        else:
            run.complete(item, choice)


def _settle_work(run: Progress, item: Item, found: Mapping[str, Any]) -> None:
    if found.get("tries") != item["tries"]:
        run.fail(item, _WRONG)
        return
    match found["status"]:
        case "completed":
            more = dict(found.get("more", {}))
            run.complete(item, found["result"], thread=found.get("thread", ""), **more)
        case "chosen":
            run.complete(item, found["result"], found["handle"])
        case "decided":
            decide(run, item, holds=found["holds"])
        case "blocked":
            item |= {"is": "blocked", "question": found["question"]}
            run.tell("node_waiting", item, content=found["question"])
        case _:
            run.fail(item, str(found.get("words", _WRONG)))


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterAdvance:
    """The route after `advance`: everything that the engine is to take up."""

    playbook: Playbook
    labels: Labels

    def __call__(self, state: State) -> tuple[str, ...]:
        plain = state[PLAYBOOK]
        found: list[str] = []
        for item in plain["work"]:
            if item["id"] in plain["running"]:
                of = plain["instances"][item["in"]]["of"]
                found.append(QUESTION if item["is"] == "blocked" else self.labels[of, item["node"]])
        return tuple(found) or (FINISH,)


def decision_node(node: Router | PlaybookCondition | Loop, place: PlaybookPlace) -> NodeSpec[RunContext]:
    """A question to the model."""
    return NodeSpec(run=_Decision(node=node, place=place), writes=(DONE,), retry=ONCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decision:
    node: Router | PlaybookCondition | Loop
    place: PlaybookPlace

    async def __call__(self, state: State, context: RunContext) -> NodeResult:
        run = progress_of(state, self.place.playbook, context)
        item = self.place.item(run)
        words = run.values(item).fill(self.node.prompt, marked)
        source = item.get("back") or item["from"]
        before = run.result_of(item["in"], source)
        try:
            found = await self._decided(item, words, marked(before) if before else "", context)
        except (TurnFailed, ModelError) as error:
            found = done(item, "failed", words=str(error))
        return NodeResult(update={DONE: found})

    async def _decided(self, item: Item, words: str, before: str, context: RunContext) -> dict[str, Any]:
        node = self.node
        if not isinstance(node, Router):
            said = await yes_or_no(words, before, context)
            if said:
                return done(item, "decided", holds=said == "yes")
            return done(item, "failed", words=f"{title(node)} was answered with neither yes nor no.")
        at = await route_by(node, words, before, context)
        if at is None:
            if not node.default:
                return done(item, "failed", words=f"{title(node)} was answered with none of its routes.")
            at = next(number for number, way in enumerate(node.routes) if way.label == node.default)
        return done(item, "chosen", result=node.routes[at].label, handle=f"route-{at}")


def tool_node(node: PlaybookToolCall, place: PlaybookPlace) -> NodeSpec[RunContext]:
    """One call of a tool through the gate, which checks the arguments first."""
    return NodeSpec(run=_Tool(node=node, place=place), writes=(DONE, SOURCES), retry=ONCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tool:
    node: PlaybookToolCall
    place: PlaybookPlace

    async def __call__(self, state: State, context: RunContext) -> NodeResult:
        for source in state.get(SOURCES, ()):
            context.scope.foreign.note(source)
        run = progress_of(state, self.place.playbook, context)
        item, node = self.place.item(run), self.node
        step = current_step()
        number = f"{node.id}_{item['id']}_{step.attempt}"
        arguments = run.values(item).fill_tree(node.arguments)
        call = ToolCall(
            id=f"call_{number}", name=node.tool, arguments=json.dumps(arguments, ensure_ascii=False)
        )
        try:
            groups = await load_groups((node.group,) if node.group else (), context, f"load_{number}")
            result = await context.tools.propose(call, groups, context.scope)
        except TurnFailed as error:
            return NodeResult(update={DONE: done(item, "failed", words=str(error)), SOURCES: []})
        context.scope.foreign.note(result.foreign)
        sources = [name for name in context.scope.foreign.sources if name not in state.get(SOURCES, ())]
        if result.success:
            found = done(item, "completed", result=unmarked(result.content))
        else:
            reason = context.redactor.line(result.summary or result.content, _SHOWN_CHARS)
            found = done(item, "failed", words=f"{title(node)} could not use {node.tool}: {reason}")
        return NodeResult(update={DONE: found, SOURCES: sources})


def waiting_node(node: UserInput | PlaybookWait | None, place: PlaybookPlace) -> NodeSpec[RunContext]:
    """Asks the person, or waits for a time; without a node, asks what a blocked agent needs."""
    run = _WaitFor(place=place) if isinstance(node, PlaybookWait) else _Ask(node=node, place=place)
    return NodeSpec(run=run, writes=(TRAIL, ASKED_BY), goes_to=(), retry=ONCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    asks_a_person: ClassVar[bool] = True
    node: UserInput | None
    place: PlaybookPlace

    async def __call__(self, state: State, context: RunContext) -> NodeResult:
        run = progress_of(state, self.place.playbook, context)
        node = self.node
        options: tuple[str, ...] = ()
        if node is None:
            item = next(
                one for one in run.work if one["is"] == "blocked" and one["id"] in run.plain["running"]
            )
            words = str(item["question"])
        else:
            item = self.place.item(run)
            words, options = run.values(item).fill(node.prompt), node.options
            run.tell("node_waiting", item, content=words)
        due = next_due(run)
        if due is not None and context.scope.mode == "otr":
            raise ConditionFailed(_OFF_THE_RECORD)
        prompt = "\n\n".join((*run.plain["unsaid"], words))
        return NodeResult(
            update={TRAIL: {"events": run.events}, ASKED_BY: context.scope.message_id},
            decision=Pause(
                prompt=context.redactor.text(prompt),
                options=options,
                asks="choice" if options else "words",
                expires_s=None if due is None else max(0.0, due - context.clock.now()),
                resumes=due is not None,
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _WaitFor:
    asks_a_person: ClassVar[bool] = True
    place: PlaybookPlace

    async def __call__(self, state: State, context: RunContext) -> NodeResult:
        if context.scope.mode == "otr":
            raise ConditionFailed(_OFF_THE_RECORD)
        run = progress_of(state, self.place.playbook, context)
        left = max(0.0, (next_due(run) or run.now) - context.clock.now())
        said = run.plain["unsaid"] or [f"I continue in {_duration(left)}."]
        return NodeResult(
            update={
                TRAIL: {"events": [{"at": run.now, "type": "workflow_waiting"}]},
                ASKED_BY: context.scope.message_id,
            },
            decision=Pause(
                prompt=context.redactor.text("\n\n".join(said)), asks="nothing", expires_s=left, resumes=True
            ),
        )


def _duration(seconds: float) -> str:
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            number = round(seconds / size, 1)
            return f"{number:g} {unit}{'' if number == 1 else 's'}"
    return f"{max(1, round(seconds))} seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Ends the run with what was said since the last answer, else with its result."""

    playbook: Playbook

    async def __call__(self, state: State, context: RunContext) -> NodeResult:
        plain = state[PLAYBOOK]
        if plain["status"] == "failed":
            raise StepFailed(context.redactor.text(plain["failure"] or _WRONG))
        parts = (*plain["unsaid"], *plain.get("notes", ()))
        text = "\n\n".join(parts).strip() or f"The playbook {self.playbook.name} has ended."
        answer = {"status": "done", "answer": context.redactor.text(text)}
        return NodeResult(update={"agent": {**answer, "updated_at": context.clock.now()}})
