"""Search one message and store what is found: the work of the two nodes after the answer.

The work is done at most once, whatever is repeated: `key` names the message and the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pipeline.domain.clock import Clock
from pipeline.llm.structured import Ask
from pipeline.memory.extraction.facts import extract_facts
from pipeline.memory.extraction.outcome import Extraction, SaidTurn
from pipeline.memory.extraction.rules import extract_rules
from pipeline.memory.extraction.skipping import SKIPPED
from pipeline.memory.policy.contradictions import superseded
from pipeline.memory.policy.profile_rules import with_rules
from pipeline.memory.ports import MemoryBook, MemoryWrites, ProfileChanged, Written
from pipeline.memory.values import Rule
from pipeline.redaction.redactor import Redactor

_MEMORY_IS_OFF: Final = f"{SKIPPED}the person lets nothing be remembered"
MAX_TRIES: Final = 100
"""Writes of one profile; each failure means that another writer has succeeded."""


async def remember_facts(
    book: MemoryBook, owner: str, said: SaidTurn, *, ask: Ask | None, clock: Clock, redactor: Redactor
) -> Mapping[str, Any]:
    """Extract the facts of `said` and store them; the diagnostics. Raises StorageError, and what `ask` raises
    beside ModelError."""
    profile = await book.profile(owner)
    if not profile.enabled:
        return {"extract_facts_ms": 0.0, "extract_facts_reason": _MEMORY_IS_OFF}
    found = await extract_facts(said, ask=ask, clock=clock, redactor=redactor)
    key = f"{said.message_id}:extract_semantic_facts"
    written = await write_extraction(book, owner, said, found, key=key, at=clock.now())
    counts = {"semantic_writes": written.facts, "semantic_bumps": written.renewed}
    return {**found.diagnostics, **counts}


async def remember_rules(
    book: MemoryBook, owner: str, said: SaidTurn, *, ask: Ask | None, clock: Clock, redactor: Redactor
) -> Mapping[str, Any]:
    """As `remember_facts`, for rules."""
    profile = await book.profile(owner)
    if not profile.enabled:
        return {"extract_procedural_ms": 0.0, "extract_procedural_reason": _MEMORY_IS_OFF}
    found = await extract_rules(said, ask=ask, clock=clock, redactor=redactor)
    key = f"{said.message_id}:extract_procedural_rules"
    written = await write_extraction(book, owner, said, found, key=key, at=clock.now())
    writes = 0 if written.repeated or written.disabled else len(found.rules)
    return {**found.diagnostics, "procedural_writes": writes}


async def write_extraction(
    book: MemoryBook, owner: str, said: SaidTurn, found: Extraction, *, key: str, at: float
) -> Written:
    """Store what was found, in one transaction. Raises StorageError."""
    if not found.writes_something:
        return Written()
    supersedes = superseded(found.facts, await book.facts(owner)) if found.facts else ()
    writes = MemoryWrites(
        key=key,
        session_id=said.session_id,
        at=at,
        facts=found.facts,
        supersedes=supersedes,
        held=found.held,
    )
    return await write_with_rules(book, owner, writes, found.rules)


async def write_with_rules(
    book: MemoryBook,
    owner: str,
    writes: MemoryWrites,
    rules: Sequence[Rule],
    *,
    consolidated_at: float | None = None,
) -> Written:
    """Store `writes` with `rules` added to the profile as it is then. Two writers lose no rule: the one that
    comes second reads the profile again. Raises StorageError."""
    if not rules:
        return await book.write(owner, writes)
    tries = 0
    while True:
        profile = await book.profile(owner)
        changed = with_rules(profile, rules)
        if changed is not profile and consolidated_at is not None:
            changed = replace(changed, last_consolidated_at=consolidated_at)
        try:
            return await book.write(owner, replace(writes, profile=None if changed is profile else changed))
        except ProfileChanged:
            tries += 1
            if tries >= MAX_TRIES:
                raise
