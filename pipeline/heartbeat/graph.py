"""The graph of a heartbeat.

heartbeat:   intake ──▶ heartbeat ──▶ (done, blocked, ten cycles: end │ else: heartbeat)
a cycle:     ask ──▶ agent ──▶ (tool calls: act ──▶ agent │ else: outcome) ──▶ end

A cycle is a subgraph with a separate exchange: its agent sees neither a chat nor the cycles before it,
only what they report. Its steps are recorded, so a restart makes no finished tool call again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from pipeline.agent.loop_graph import LOOP_CHANNELS, loop_nodes
from pipeline.agent.node import THOUGHTS, after_agent, agent
from pipeline.agent.tool_node import UNASKED, act
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import End, Next, NodeResult, State
from pipeline.graph.definition.elements import Limits
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.spec import END, EdgeSpec, GraphSpec, NodeSpec, OnSuccess, Route
from pipeline.heartbeat.prompt import CycleFacts, cycle_prompt, is_silent
from pipeline.nodes.intake_steps import MESSAGE, intake_nodes
from pipeline.runtime.context import RunContext, ignore_text, none_steered
from pipeline.runtime.null_services import KnownHistory, NullFacts

MAX_CYCLES: Final = 10
"""Cycles of one heartbeat."""
MAX_ROUNDS: Final = 20
"""Calls of the model with tool results, in one cycle."""
SUMMARY_CHARS: Final = 500
"""Length of what a cycle hands on."""
WAKE: Final = "wake"
"""The state's key for what the host gives: `sources`, `instructions`, `projects`, `tasks`, `zone`, `whom`."""
HEARTBEAT: Final = "heartbeat"
"""The state's key for `status`, `cycle`, `summary`, `blocker`, `said`, the words for the person, and
`unasked`: what was not done because no one could be asked."""
_ASKED: Final = "asked"
_ONCE: Final = RetryPolicy(max_attempts=1)
_MAX_STEPS: Final = 100
_CYCLE_STEPS: Final = 3 * MAX_ROUNDS + 10

Agents = Callable[[], Sequence[str]]
"""The agents of the gateway, one line each; called in every cycle."""


def no_agents() -> Sequence[str]:
    """No agents, for a graph that is only shown."""
    return ()


def heartbeat_graph(agents: Agents = no_agents) -> GraphSpec[RunContext]:
    """The graph of one heartbeat."""
    reads = (MESSAGE, WAKE, HEARTBEAT)
    return GraphSpec(
        name="heartbeat",
        entry="intake",
        limits=Limits(max_steps=_MAX_STEPS, outer_only=True),
        nodes={
            "intake": intake_nodes()["intake"],
            "heartbeat": NodeSpec(subgraph=_cycle(agents), reads=reads, writes=(HEARTBEAT,)),
        },
        edges=(
            EdgeSpec(source="intake", target="heartbeat", when=OnSuccess()),
            EdgeSpec(source="heartbeat", when=Route(choose=_after_cycle, targets=("heartbeat", END))),
        ),
    )


def _after_cycle(state: State) -> str:
    """Done, blocked and the last cycle end; else there is another one."""
    known = state[HEARTBEAT]
    over = known["status"] != "running" or known["cycle"] >= MAX_CYCLES
    return END if over else "heartbeat"


def _cycle(agents: Agents) -> GraphSpec[RunContext]:
    parts, steps = loop_nodes(), _Cycle(agents=agents)
    return GraphSpec(
        name="heartbeat_cycle",
        entry="ask",
        limits=Limits(max_steps=_CYCLE_STEPS),
        channels=LOOP_CHANNELS,
        nodes={
            "ask": NodeSpec(run=steps.ask, writes=(_ASKED,), retry=_ONCE),
            "agent": replace(parts["agent"], run=steps.think),
            "act": replace(parts["act"], run=steps.act),
            "outcome": NodeSpec(run=steps.outcome, writes=(HEARTBEAT,), retry=_ONCE),
        },
        edges=(
            EdgeSpec(source="ask", target="agent", when=OnSuccess()),
            EdgeSpec(source="agent", when=Route(choose=_after_thinking, targets=("outcome", "act"))),
            EdgeSpec(source="act", target="agent", when=OnSuccess()),
            EdgeSpec(source="outcome", target=END, when=OnSuccess()),
        ),
    )


def _after_thinking(state: State) -> str:
    """Tool calls are made; whatever the agent says without any ends the cycle, CONTINUE too."""
    return "act" if after_agent(state) == "act" else "outcome"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cycle:
    """The nodes of a cycle."""

    agents: Agents

    async def ask(self, state: State, context: RunContext) -> NodeResult:
        """Write the prompt."""
        wake, known = state[WAKE], state.get(HEARTBEAT, {})
        facts = CycleFacts(
            wake=str(state[MESSAGE]),
            now=context.clock.now(),
            zone=wake["zone"],
            cycle=known.get("cycle", 0) + 1,
            most=MAX_CYCLES,
            whom=wake["whom"],
            instructions=wake["instructions"],
            projects=wake["projects"],
            tasks=wake["tasks"],
            skills=context.skills.summaries(),
            agents=self.agents(),
            summary=known.get("summary", ""),
            blocker=known.get("blocker", ""),
        )
        return NodeResult(update={_ASKED: cycle_prompt(facts)})

    async def think(self, state: State, context: RunContext) -> NodeResult:
        """One answer of the model. A blocked agent has a cycle's outcome too."""
        # Without the words before a tool call: the last ones are for the person.
        found = await agent(
            {key: value for key, value in state.items() if key != "agent"}, _own(state, context)
        )
        return found._replace(decision=Next()) if isinstance(found.decision, End) else found

    async def act(self, state: State, context: RunContext) -> NodeResult:
        """Make the calls of the newest answer."""
        return await act(state, _own(state, context))

    async def outcome(self, state: State, context: RunContext) -> NodeResult:
        """What the cycle hands on, and how it ended."""
        said, known = state["agent"], state.get(HEARTBEAT, {})
        answer = "" if is_silent(str(said.get("answer", ""))) else str(said["answer"])
        summary = context.redactor.text(str(said.get("status_report") or answer))
        blocker = ": ".join(filter(None, (said.get("blocker_reason"), said.get("unblock_requirements"))))
        status = {"blocked": "blocked", "continue": "running"}.get(said["status"], "done")
        update: dict[str, Any] = {
            "status": status,
            "cycle": known.get("cycle", 0) + 1,
            "summary": summary[:SUMMARY_CHARS],
            "blocker": blocker[:SUMMARY_CHARS] if status == "blocked" else "",
            "said": answer,
            "unasked": [*known.get("unasked", ()), *_unasked(state)],
        }
        return NodeResult(update={HEARTBEAT: update})


def _unasked(state: State) -> list[str]:
    return [line for one in state.get(THOUGHTS, ()) for line in one.get("detail", {}).get(UNASKED, ())]


def _own(state: State, context: RunContext) -> RunContext:
    """The context of this cycle's agent: its prompt, and nothing of a conversation."""
    for source in state[WAKE]["sources"]:
        context.scope.foreign.note(source)
    settings = replace(
        context.settings,
        completion="declared",
        tool_answers=False,
        max_rounds=min(context.settings.max_rounds, MAX_ROUNDS),
    )
    return replace(
        context,
        text=str(state[_ASKED]),
        files=(),
        attached="",
        history=KnownHistory(),
        facts=NullFacts(),
        settings=settings,
        on_text=ignore_text,
        on_earlier=ignore_text,
        steered=none_steered,
    )
