"""An agent of a workflow as a subgraph: its prompt, the loop of a model and its tools, and its output.

ask ──▶ agent ──▶ (tool calls: act ──▶ agent │ else: output) ──▶ end

It sees neither the conversation nor the exchanges of other agents: its prompts and the previous output are
all that it knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from pipeline.agent.loop_graph import LOOP_CHANNELS, loop_nodes
from pipeline.agent.model_messages import LOADED
from pipeline.agent.node import LOOP, after_agent, agent
from pipeline.agent.sent_files import SENDS, sent_files
from pipeline.agent.tool_node import act
from pipeline.domain.errors import TurnFailed
from pipeline.domain.files import stored_file_to_plain
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import End, Next, NodeResult, State
from pipeline.graph.definition.spec import END, EdgeSpec, GraphSpec, NodeSpec, OnSuccess, Route, append
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.records import TRAIL
from pipeline.nodes.intake_steps import MESSAGE
from pipeline.nodes.templates import DATA_NOTE, marked
from pipeline.nodes.tools import load_groups
from pipeline.runtime.context import RunContext, ignore_text, none_steered
from pipeline.runtime.null_services import KnownHistory, NullFacts, NullSkills
from pipeline.runtime.ports import Workspace, WorkspaceTexts
from pipeline.runtime.scope import TurnScope
from pipeline.runtime.settings import PipelineSettings
from pipeline.workflows.delegation import Report, SubAgentCall, WorkflowTools
from pipeline.workflows.document import NOTE, Workflow, WorkflowAgent, filled, places
from pipeline.workflows.document import PREVIOUS as PREVIOUS_PLACE
from pipeline.workflows.steps import CHANNELS, FIRST, ONCE, PREVIOUS, SOURCES, entry, values_of

MAX_TURNS: Final = 20
"""Calls of the model for one visit of an agent, those of its sub-agents included."""
ASKED: Final = "asked"
"""The inner state's key for the prompts of a visit, with the previous output in their places."""
EVENTS: Final = "events"
"""The inner state's key for what happened to the calls of sub-agents."""
BELOW: Final = "below"
"""The inner state's key for the turns that sub-agents have taken."""
_MAX_CALL_ID = 60
_WRITES: Final = (PREVIOUS, FIRST, SOURCES, SENDS, TRAIL)


def agent_node(node: WorkflowAgent, workflow: Workflow, labels: Mapping[str, str]) -> NodeSpec[RunContext]:
    """One agent, with its sub-agents as tools. `labels` are the names in the graph of all approvals."""
    loop = _loop(AgentStep(node=node, workflow=workflow, labels=labels))
    reads: tuple[str, ...] = (PREVIOUS, FIRST, SOURCES, MESSAGE)
    texts = f"{node.system_prompt}{node.user_prompt}"
    if any(place.startswith(NOTE) for place in places(texts)):
        reads = (*reads, "answers")
    return NodeSpec(subgraph=loop, reads=reads, writes=_WRITES, shown=node.name or node.id)


def _loop(step: AgentStep) -> GraphSpec[RunContext]:
    parts = loop_nodes()
    thinking, acting = parts["agent"], parts["act"]
    return GraphSpec(
        name="workflow_agent",
        entry="ask",
        channels={**LOOP_CHANNELS, SOURCES: CHANNELS[SOURCES], SENDS: CHANNELS[SENDS], EVENTS: append},
        nodes={
            "ask": NodeSpec(run=step.ask, writes=(ASKED, LOADED, TRAIL), retry=ONCE),
            "agent": replace(thinking, run=step.think),
            "act": replace(acting, run=step.act, writes=(*(acting.writes or ()), TRAIL, EVENTS, BELOW)),
            "output": NodeSpec(run=step.output, writes=_WRITES, retry=ONCE),
        },
        edges=(
            EdgeSpec(source="ask", target="agent", when=OnSuccess()),
            EdgeSpec(source="agent", when=Route(choose=_after_thinking, targets=("output", "act", "agent"))),
            EdgeSpec(source="act", target="agent", when=OnSuccess()),
            EdgeSpec(source="output", target=END, when=OnSuccess()),
        ),
    )


def _after_thinking(state: State) -> str:
    following = after_agent(state)
    return "output" if following == END else following


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStep:
    """The nodes of one agent. Playbooks use `think` and `act` with their own prompts."""

    node: WorkflowAgent
    workflow: Workflow
    labels: Mapping[str, str]
    above: SubAgentCall | None = None
    """The call in which it runs as a sub-agent."""
    turns: int = MAX_TURNS

    async def ask(self, state: State, context: RunContext) -> NodeResult:
        """Write the prompts, and load the tool groups."""
        values = values_of(state, self.labels)
        system = self.node.system_prompt
        if given := places(system):
            system = filled(system, {name: marked(values[name]) for name in given if name in values})
            system = f"{system}\n\n{DATA_NOTE}"
        began, groups = entry(context, "step_start"), self.node.groups
        if groups and self.above is None:
            # The gate lists those of a sub-agent, which cannot load any, from its scope.
            groups = await load_groups(groups, context, f"load_{self.node.id}"[:_MAX_CALL_ID])
        return NodeResult(
            update={
                ASKED: {"system": system, "user": self._task(values)},
                LOADED: {"groups": list(groups), "skills": []},
                TRAIL: {"node": self.node.id, "log": [began]},
            }
        )

    def _task(self, values: Mapping[str, str]) -> str:
        """The user's part of the prompt. What a parent has written is used in place of the previous output,
        and is never left out."""
        prompt, previous = self.node.user_prompt, values[PREVIOUS_PLACE]
        if not prompt.strip():
            return previous
        if self.above is not None and PREVIOUS_PLACE not in places(prompt):
            return f"{filled(prompt, values)}\n\n{previous}"
        return filled(prompt, values)

    async def think(self, state: State, context: RunContext) -> NodeResult:
        """One answer of the model."""
        own, _ = self._own(state, context)
        # Without the words before a tool call: the output is what the model says at last.
        result = await agent({key: value for key, value in state.items() if key != "agent"}, own)
        # A blocked agent has said why: that is its output.
        return result._replace(decision=Next()) if isinstance(result.decision, End) else result

    async def act(self, state: State, context: RunContext) -> NodeResult:
        """Make the calls of the newest answer."""
        own, tools = self._own(state, context)
        result = await act(state, own)
        loop = dict(result.update[LOOP])
        loop["rounds"] = loop.get("rounds", 0) + tools.spent
        events = [dict(event) for event in tools.events]
        own_keys = {
            TRAIL: {"node": self.node.id, "log": events},
            EVENTS: events,
            BELOW: state.get(BELOW, 0) + tools.spent,
        }
        return result._replace(update={**result.update, LOOP: loop, **own_keys})

    async def output(self, state: State, context: RunContext) -> NodeResult:
        """What the next node gets."""
        text = str(state.get("agent", {}).get("answer", ""))
        trail = {"node": self.node.id, "log": [entry(context, "llm_response")], "output": text}
        sources = [name for name in context.scope.foreign.sources if name not in state.get(SOURCES, ())]
        files = [stored_file_to_plain(file) for file in sent_files(state)]
        return NodeResult(update={PREVIOUS: text, FIRST: False, SOURCES: sources, SENDS: files, TRAIL: trail})

    def _own(self, state: State, context: RunContext) -> tuple[RunContext, WorkflowTools]:
        """The context of this agent: its prompts and its tools, and nothing of the conversation."""
        for source in state.get(SOURCES, ()):
            context.scope.foreign.note(source)
        rounds = state.get(LOOP, {}).get("rounds", 0)
        asked: Mapping[str, str] = state[ASKED]
        message = str(state.get(MESSAGE, ""))
        tools = WorkflowTools(
            context.tools,
            self.workflow,
            self.node,
            run=_Delegate(workflow=self.workflow, context=context, message=message),
            now=context.clock.now,
            # The call that asked, and the answer at the end, are turns too.
            turns=self.turns - rounds - 2,
            above=self.above,
        )
        system = asked["system"]
        # A prompt with what people wrote is not kept longer than its run.
        settings_for = _settings if system == self.node.system_prompt else _settings.__wrapped__
        with_files = bool(state.get(FIRST)) and self.above is None
        own = replace(
            context,
            text=asked["user"],
            by="",
            files=context.files if with_files else (),
            attached=context.attached if with_files else "",
            speech=None,
            history=KnownHistory(),
            tools=tools,
            skills=NullSkills(),
            workspace=_OnlyRules(inner=context.workspace),
            facts=NullFacts(),
            settings=settings_for(context.settings, system, self.turns),
            on_text=ignore_text,
            on_earlier=ignore_text,
            steered=none_steered,
        )
        return own, tools


@lru_cache(maxsize=128)
def _settings(given: PipelineSettings, system_prompt: str, turns: int) -> PipelineSettings:
    """The settings of an agent with that prompt and so many turns. Cached: they are made for each answer."""
    return replace(
        given,
        system_prompt=system_prompt,
        # The document says who the agent is.
        bot_name="",
        completion="implicit",
        tool_answers=False,
        # The last answer is a turn too.
        max_rounds=max(0, turns - 1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Delegate:
    """Runs a sub-agent within its parent's step."""

    workflow: Workflow
    context: RunContext
    message: str

    async def __call__(self, call: SubAgentCall, turns: int, scope: TurnScope) -> Report:
        step = AgentStep(node=call.agent, workflow=self.workflow, labels={}, above=call, turns=turns)
        graph = _loop(step)
        own = replace(scope, depth=scope.depth + 1, groups=call.agent.groups)
        context = replace(self.context, scope=own)
        inputs = {PREVIOUS: call.message, MESSAGE: self.message}
        outcome = await Executor(graph, clock=context.clock).run(inputs, context)
        if outcome.stop_reason in ("max_loops", "max_steps"):
            raise TurnFailed(outcome.stop_reason, "It went round in circles and was stopped.")
        outcome.raise_for_failure()
        used = outcome.nodes["agent"].executions + int(outcome.state.get(BELOW, 0))
        events = tuple(outcome.state.get(EVENTS, ()))
        text, files = str(outcome.state.get(PREVIOUS, "")), sent_files(outcome.state)
        return Report(text=text, turns=used, events=events, files=files)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnlyRules:
    """The operator's rules, without the identity and what is remembered of a person: the document says who
    the agent is."""

    inner: Workspace

    def texts(self, scope: TurnScope) -> WorkspaceTexts:
        """See `Workspace.texts`."""
        known = self.inner.texts(scope)
        return WorkspaceTexts(soul=known.soul, time_zone=known.time_zone)
