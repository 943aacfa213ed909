"""The steps before the agent, in every graph that answers people: intake, compaction, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pipeline.agent.model_messages import fixed_tokens
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.spec import EdgeSpec, NodeSpec, OnSuccess, Route
from pipeline.history.compaction import Compaction
from pipeline.history.view import HISTORY
from pipeline.intake.cleaning import clean_text
from pipeline.intake.confirmation import after_intake, set_aside
from pipeline.intake.node import intake_node, message_node
from pipeline.intake.silent_finish import declined
from pipeline.runtime.context import RunContext

MESSAGE = "message"
"""The state's key for the person's words, in the graph of a document."""
ENDS: Final = ("declined", "set_aside")
"""The nodes that end the turn before the agent."""


def intake_nodes() -> dict[str, NodeSpec[RunContext]]:
    """`intake`, the entry, and the nodes around it. The intake puts the message into the state and reads no
    history: the steps that use the history read it. So none leads to `compact`, which runs that an earlier
    version recorded may still have to reach."""

    async def with_message(state: State, context: RunContext) -> NodeResult:
        result = await message_node(state, context)
        return result._replace(update={**result.update, MESSAGE: clean_text(context.text)})

    return {
        **conversation_steps(),
        "intake": NodeSpec(run=with_message, reads=(), writes=("intake", MESSAGE)),
    }


def conversation_steps() -> dict[str, NodeSpec[RunContext]]:
    """The same nodes for a graph whose nodes read the message from the run's context."""
    return {
        "intake": NodeSpec(run=intake_node(fixed_tokens), reads=(), writes=("intake",)),
        "set_aside": NodeSpec(run=set_aside, reads=("answers",), writes=("agent",)),
        "declined": NodeSpec(run=declined, reads=("intake",), writes=("agent",)),
        "compact": NodeSpec(run=Compaction(fixed_tokens), writes=(HISTORY,), nullable=(HISTORY,)),
    }


def intake_edges(agent: str = "agent") -> tuple[EdgeSpec, ...]:
    """The edges between them, and to the node that comes next."""
    choose = after_intake if agent == "agent" else _leading_to(agent)
    targets = (agent, "compact", *ENDS)
    return (
        EdgeSpec(source="intake", when=Route(choose=choose, targets=targets)),
        EdgeSpec(source="compact", target=agent, when=OnSuccess()),
    )


def _leading_to(agent: str) -> Callable[[State], str]:
    def after_the_intake(state: State) -> str:
        found = after_intake(state)
        return agent if found == "agent" else found

    return after_the_intake
