"""An agent of a playbook as a subgraph: its task, the loop of a model and its tools, and what it hands back.

brief ──▶ agent ──▶ (tool calls: act ──▶ agent │ else: hand_back) ──▶ end

What fails is a result like any other: the playbook decides what becomes of the run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

from pipeline.agent.loop_graph import LOOP_CHANNELS, loop_nodes
from pipeline.agent.model_messages import LOADED
from pipeline.agent.node import after_agent
from pipeline.domain.errors import ModelError, TurnFailed
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import Goto, NodeResult, State
from pipeline.graph.definition.spec import END, EdgeSpec, GraphSpec, NodeSpec, OnSuccess, Route, append
from pipeline.graph.run.records import TRAIL
from pipeline.nodes.intake_steps import MESSAGE
from pipeline.nodes.templates import marked
from pipeline.nodes.tools import load_groups
from pipeline.playbooks.asking import task_by, verdict_on
from pipeline.playbooks.document import TRIGGER_PLACE, PlaybookAgent, title
from pipeline.playbooks.hand_back import INSTRUCTIONS, HandBack, read_hand_back
from pipeline.playbooks.progress import Item, Progress
from pipeline.playbooks.state import DONE, ONCE, OUTPUTS, PLAYBOOK, PlaybookPlace, done, progress_of
from pipeline.runtime.context import RunContext
from pipeline.workflows import document as workflows
from pipeline.workflows.agent_step import ASKED, BELOW, EVENTS, AgentStep
from pipeline.workflows.steps import FIRST, SOURCES

PROBLEM: Final = "problem"
"""The inner state's key for why the agent could not do its work."""
_MAX_CALL_ID = 60
_HAND_BACK: Final = "hand_back"
_AFTER_THINKING: Final = (_HAND_BACK, "act", "agent")

_Run = Callable[[State, RunContext], Awaitable[NodeResult]]


def agent_node(node: PlaybookAgent, place: PlaybookPlace) -> NodeSpec[RunContext]:
    """One agent."""
    steps = _SubAgent(node=node, place=place)
    parts = loop_nodes()
    graph = GraphSpec(
        name="playbook_agent",
        entry="brief",
        channels={**LOOP_CHANNELS, SOURCES: append, EVENTS: append},
        nodes={
            "brief": NodeSpec(
                run=_reported(steps.brief),
                writes=(ASKED, LOADED, FIRST, TRAIL, PROBLEM),
                nullable=(ASKED, LOADED, FIRST, TRAIL, PROBLEM),
                retry=ONCE,
                goes_to=(_HAND_BACK,),
            ),
            "agent": replace(
                parts["agent"],
                run=_reported(steps.think),
                writes=(*(parts["agent"].writes or ()), PROBLEM),
                goes_to=(_HAND_BACK,),
            ),
            "act": replace(
                parts["act"],
                run=_reported(steps.act),
                writes=(*(parts["act"].writes or ()), TRAIL, EVENTS, BELOW, PROBLEM),
                goes_to=(_HAND_BACK,),
            ),
            _HAND_BACK: NodeSpec(run=steps.hand_back, writes=(DONE, SOURCES), retry=ONCE),
        },
        edges=(
            EdgeSpec(source="brief", target="agent", when=OnSuccess()),
            EdgeSpec(source="agent", when=Route(choose=_after_thinking, targets=_AFTER_THINKING)),
            EdgeSpec(source="act", target="agent", when=OnSuccess()),
            EdgeSpec(source=_HAND_BACK, target=END, when=OnSuccess()),
        ),
    )
    reads = (PLAYBOOK, OUTPUTS, SOURCES, MESSAGE)
    return NodeSpec(subgraph=graph, reads=reads, writes=(DONE, SOURCES))


def _after_thinking(state: State) -> str:
    following = after_agent(state)
    return _HAND_BACK if following == END else following


def _reported(run: _Run) -> _Run:
    """The node, whose failure is written in place of its results."""

    async def reported(state: State, context: RunContext) -> NodeResult:
        try:
            return await run(state, context)
        except (TurnFailed, ModelError) as error:
            return NodeResult(update={PROBLEM: str(error)}, decision=Goto(_HAND_BACK))

    return reported


@dataclass(frozen=True, slots=True, kw_only=True)
class _SubAgent:
    """The nodes of one agent."""

    node: PlaybookAgent
    place: PlaybookPlace

    async def brief(self, state: State, context: RunContext) -> NodeResult:
        """Write the task, and load the tool groups."""
        run, item = self._item(state, context)
        values, node = run.values(item), self.node
        task = values.fill(node.prompt)
        if node.before.strip():
            task = await task_by(values.fill(node.before, marked), task, context)
        for question, answer in item.get("answers", ()):
            task += f"\n\nYou have asked the person: {question}\n\nThe person has answered: {answer}"
        groups = node.groups
        if groups:
            groups = await load_groups(groups, context, f"load_{node.id}_{item['id']}"[:_MAX_CALL_ID])
        event = {"at": context.clock.now(), "type": "node_thinking", "node": node.id, "in": item["in"]}
        return NodeResult(
            update={
                ASKED: {"system": f"{node.system_prompt}\n\n{INSTRUCTIONS}", "user": task},
                LOADED: {"groups": list(groups), "skills": []},
                FIRST: TRIGGER_PLACE in node.prompt and not run.instance(item)["above"],
                TRAIL: {"events": [event]},
            }
        )

    async def think(self, state: State, context: RunContext) -> NodeResult:
        """One answer of the model."""
        return await self._step.think(state, context)

    async def act(self, state: State, context: RunContext) -> NodeResult:
        """Make the calls of the newest answer."""
        return await self._step.act(state, context)

    async def hand_back(self, state: State, context: RunContext) -> NodeResult:
        """What became of the visit."""
        _, item = self._item(state, context)
        sources = [name for name in context.scope.foreign.sources if name not in state.get(SOURCES, ())]
        return NodeResult(update={DONE: await self._became(item, state, context), SOURCES: sources})

    async def _became(self, item: Item, state: State, context: RunContext) -> dict[str, Any]:
        if problem := state.get(PROBLEM):
            return done(item, "failed", words=str(problem))
        said = state.get("agent", {})
        text = str(said.get("answer", ""))
        if said.get("status") == "blocked":
            parts = (said.get("blocker_reason"), said.get("unblock_requirements"))
            return done(item, "blocked", question="\n\n".join(part for part in parts if part) or text)
        found = read_hand_back(text)
        if found.needs:
            return done(item, "blocked", question=found.needs)
        more = _plain(found)
        if self.node.after.strip() or self.node.criteria.strip():
            run, _ = self._item(state, context)
            values = run.values(item)
            after, criteria = (values.fill(one, marked) for one in (self.node.after, self.node.criteria))
            try:
                accepted, verdict = await verdict_on(after, criteria, marked(found.result), context)
            except (TurnFailed, ModelError) as error:
                return done(item, "failed", words=str(error))
            if not accepted:
                words = f"What {title(self.node)} has done was not accepted: {verdict}"
                return done(item, "failed", words=words)
            more["verdict"] = verdict
        thread = f"{context.scope.message_id}/{self.place.of or 'main'}/{self.node.id}/{item['id']}"
        return done(item, "completed", result=found.result, thread=thread, more=more)

    def _item(self, state: State, context: RunContext) -> tuple[Progress, Item]:
        run = progress_of(state, self.place.playbook, context)
        return run, self.place.item(run)

    @property
    def _step(self) -> AgentStep:
        """The same agent as a step of a workflow, whose prompts `brief` has written."""
        own = workflows.WorkflowAgent(id=self.node.id, name=title(self.node), groups=self.node.groups)
        return AgentStep(
            node=own, workflow=workflows.Workflow(name="", nodes={own.id: own}, connections=()), labels={}
        )


def _plain(found: HandBack) -> dict[str, str]:
    return {"summary": found.summary, "artifact": found.artifact, "nextAction": found.next_action}
