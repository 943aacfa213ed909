"""The node that has the agent's tool calls done: in order, through the gate, results returned together.

It executes nothing itself: the gate does, or refuses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pipeline.agent.node import LOADED, LOOP
from pipeline.agent.prompt import EXCHANGE
from pipeline.domain.chat import ChatMessage, message_from_plain, message_to_plain
from pipeline.graph.decisions import Next, NodeResult, State
from pipeline.runtime.context import RunContext

META_TOOLS = ("load_tools", "load_skills")
"""Calls that cost a round more (seed 4)."""


async def act(state: State, context: RunContext) -> NodeResult:
    """Propose the calls of the newest answer, one after the other.

    Updates `exchange` (the results, in the order of the calls), `loaded` (groups and skills) and `loop`
    (`rounds`).
    """
    asked = message_from_plain(state[EXCHANGE][-1])
    loaded = state.get(LOADED, {})
    groups: list[str] = list(loaded.get("groups", ()))
    skills: list[str] = list(loaded.get("skills", ()))
    results: list[dict[str, Any]] = []
    for call in asked.tool_calls:
        result = await context.tools.propose(call, tuple(groups), context.scope)
        _add(groups, result.groups)
        _add(skills, result.skills)
        results.append(
            message_to_plain(ChatMessage(role="tool", content=result.content, tool_call_id=call.id))
        )
    loop = state[LOOP]
    cost = 1 + any(call.name in META_TOOLS for call in asked.tool_calls)
    return NodeResult(
        update={
            EXCHANGE: results,
            LOADED: {"groups": groups, "skills": skills},
            LOOP: {**loop, "rounds": loop.get("rounds", 0) + cost},
        },
        decision=Next(),
    )


def _add(known: list[str], more: Iterable[str]) -> None:
    known += [one for one in more if one not in known]
