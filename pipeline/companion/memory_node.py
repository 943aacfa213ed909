"""The node that loads memory: what is remembered of the owner and fits the message, and the rules for
answers.

What it puts into the state is not recorded with the run, so that what a person has deleted is nowhere else: a
run that is resumed loads it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pipeline.companion.state import (
    DIAGNOSTICS,
    MEMORY,
    MESSAGE,
    SAID,
    WORKING_MEMORY,
    owner_of,
    progress_of,
    workflow_of,
)
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.memory import loading
from pipeline.memory.loading import Entry, LoadedMemory
from pipeline.memory.recall_request import asks_for_recall
from pipeline.runtime.context import RunContext

UNRECORDED: Final = frozenset({WORKING_MEMORY, MEMORY})
"""The keys of the state that no record of a run has."""


async def load_memory(state: State, context: RunContext) -> NodeResult:
    """Load the memory of the turn's owner. Raises NoOwner and StorageError."""
    loaded = await _loaded(state, context)
    return NodeResult(update={**_values(loaded, state), DIAGNOSTICS: dict(loaded.diagnostics)})


async def recalled(state: State, context: RunContext) -> State:
    """The state with what `load_memory` has put there, loaded again where the run was resumed without it."""
    if WORKING_MEMORY in state:
        return state
    return {**state, **_values(await _loaded(state, context), state)}


async def _loaded(state: State, context: RunContext) -> LoadedMemory:
    flow, owner = workflow_of(context), owner_of(context)
    return await loading.load_memory(
        flow.memory_store,
        owner,
        state[MESSAGE],
        first_turn=progress_of(state).get("turn_count", 1) == 1,
        clock=context.clock,
        mode=flow.memory_mode,
        embedder=flow.embedding_provider,
    )


def _values(loaded: LoadedMemory, state: State) -> dict[str, Any]:
    facts = [one for one in loaded.entries if not isinstance(one, str) and one["type"] == "semantic"]
    return {
        WORKING_MEMORY: [one if isinstance(one, str) else dict(one) for one in loaded.entries],
        MEMORY: {
            "summary": loaded.summary,
            "active_concerns": _objects(facts, "predicate", "WORRIES_ABOUT"),
            "current_goal": next(iter(_objects(facts, "category", "goal")), ""),
            "procedural_rules": [rule.text for rule in loaded.rules],
            "proactive_recall_enabled": loaded.proactive_recall or asks_for_recall(state.get(SAID, "")),
        },
    }


def _objects(facts: Sequence[Entry], key: str, value: str) -> list[str]:
    """What the facts with that value are about."""
    return [str(one["object"]) for one in facts if one.get(key) == value and one.get("object")]


def memory_lines(state: Mapping[str, Any]) -> tuple[str, ...]:
    """The working memory as lines of a prompt."""
    return tuple(loading.render_entry(entry) for entry in state.get(WORKING_MEMORY, ()))
