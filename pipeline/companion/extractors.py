"""The two nodes after the answer: each searches the message for one kind of memory, and stores what it finds.

They run in parallel and write different keys of the diagnostics. Work that is repeated stores nothing
twice. Its failures change no answer: it has been delivered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from pipeline.agent.metered_ask import metered_ask
from pipeline.companion.state import CRISIS, DIAGNOSTICS, RESPONSE, SAID, owner_of, progress_of, workflow_of
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.memory.extraction.model_candidates import MAX_TOKENS, Kind, answer_schema
from pipeline.memory.extraction.outcome import SaidTurn
from pipeline.memory.extraction.writing import remember_facts, remember_rules
from pipeline.memory.ports import MemoryWrites
from pipeline.memory.recall_request import allow_recall, asks_for_recall
from pipeline.memory.source_message import exercise_id
from pipeline.memory.values import EntityRef, Fact
from pipeline.runtime.context import RunContext
from pipeline.safety.assessment import CLEAR
from pipeline.safety.conversation_entries import entries_of

_ENTRIES: Final = 12
_PERSON: Final = EntityRef("User", "user")

Remember = Callable[..., Awaitable[Mapping[str, Any]]]


async def extract_semantic_facts(state: State, context: RunContext) -> NodeResult:
    """Store facts of the message, and that an exercise was completed. Raises StorageError."""
    completed = await _remember_exercise(state, context)
    found = await _remembered("facts", remember_facts, state, context)
    return NodeResult(update={DIAGNOSTICS: {**found, **completed}})


async def extract_procedural_rules(state: State, context: RunContext) -> NodeResult:
    """Store rules for answers that the message asks for, and that it asks for earlier conversations. Raises
    StorageError."""
    found = await _remembered("rules", remember_rules, state, context)
    flow = workflow_of(context)
    if flow.memory_mode != "incognito" and asks_for_recall(str(state.get(SAID, ""))):
        found["proactive_recall_allowed"] = await allow_recall(flow.memory_store, owner_of(context))
    return NodeResult(update={DIAGNOSTICS: found})


async def _remembered(kind: Kind, remember: Remember, state: State, context: RunContext) -> dict[str, Any]:
    flow, said = workflow_of(context), await _said(state, context)
    found = await remember(
        flow.memory_store,
        owner_of(context),
        said,
        # What is said in a crisis goes to no model that only collects, and a small one finds nothing.
        ask=None
        if said.crisis_level >= CLEAR or not context.settings.judges
        else metered_ask(context, answer_schema(kind), max_tokens=MAX_TOKENS),
        clock=context.clock,
        redactor=context.redactor,
    )
    return dict(found)


async def _said(state: State, context: RunContext) -> SaidTurn:
    """The message as evidence, with what was said before."""
    before = entries_of(await context.history.conversation(), context.scope.author.id, _ENTRIES)
    scope = context.scope
    return SaidTurn(
        text=str(state.get(SAID, "")),
        message_id=scope.message_id,
        session_id=scope.session_id,
        turn_index=progress_of(state).get("turn_count", 1) - 1,
        private=scope.private,
        off_the_record=workflow_of(context).memory_mode == "incognito",
        asked=before[-1].text if before and before[-1].said_by == "bot" else "",
        earlier=tuple(entry.text for entry in before if entry.said_by == "person"),
        crisis_level=state.get(CRISIS, {}).get("level", 0),
    )


async def _remember_exercise(state: State, context: RunContext) -> dict[str, Any]:
    """Store that an exercise was completed, in a private chat. Raises StorageError."""
    done = state.get(RESPONSE, {}).get("completed")
    flow = workflow_of(context)
    if done is None or flow.memory_mode == "incognito" or not context.scope.private:
        return {}
    message_id, now = context.scope.message_id, context.clock.now()
    fact = Fact(
        id=exercise_id(message_id),
        category="coping_strategy",
        subject=_PERSON,
        predicate="USES",
        object=EntityRef("CopingStrategy", done["object"].removeprefix("CopingStrategy:")),
        evidence_quote=done["evidence"],
        confidence="high",
        source_session_id=context.scope.session_id,
        source_turn_index=progress_of(state).get("turn_count", 1) - 1,
        created_at=now,
        last_referenced_at=now,
        write_timing="immediate",
        write_reason="exercise_completed",
    )
    key = f"{message_id}:exercise"
    writes = MemoryWrites(key=key, session_id=context.scope.session_id, at=now, facts=(fact,))
    written = await flow.memory_store.write(owner_of(context), writes)
    return {"exercise_writes": written.facts + written.renewed}
