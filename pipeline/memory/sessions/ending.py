"""End a session: summarise it, decide about the candidates that it holds, and store all of that at once.

A step that fails is counted and leaves the others alone. The work is done at most once for its key, so it can
be repeated after a crash.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.frozen import dataclass
from pipeline.llm.structured import Ask
from pipeline.memory.candidates import FactCandidate, Held
from pipeline.memory.extraction.facts import fact_of
from pipeline.memory.extraction.writing import write_with_rules
from pipeline.memory.policy.contradictions import says_the_same, superseded
from pipeline.memory.ports import MemoryBook, MemoryWrites, Written
from pipeline.memory.sessions.ended import EndedSession
from pipeline.memory.sessions.fact_support import Supported, supported
from pipeline.memory.sessions.rule_clusters import clusters, consolidated
from pipeline.memory.sessions.summary import Summarised, summarise
from pipeline.memory.values import Fact, Rule, SessionArc
from pipeline.redaction.redactor import Redactor

_log = logging.getLogger(__name__)

MAX_EARLIER_ARCS: Final = 50
"""The newest arcs that are looked at for support of a candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd:
    """What the end of a session has written."""

    semantic_writes: int = 0
    semantic_bumps: int = 0
    semantic_skips: int = 0
    procedural_writes: int = 0
    procedural_skips: int = 0
    arc: bool = False
    reason: str = ""
    """Of the summary: what was done, or why not. No words of a person."""
    repeated: bool = False
    """The session's end was stored before, and nothing was written."""

    @property
    def diagnostics(self) -> Mapping[str, Any]:
        """The counts, by their keys."""
        return {
            "semantic_writes": self.semantic_writes,
            "semantic_bumps": self.semantic_bumps,
            "semantic_skips": self.semantic_skips,
            "procedural_writes": self.procedural_writes,
            "procedural_skips": self.procedural_skips,
        }


async def end_session(
    book: MemoryBook,
    owner: str,
    session: EndedSession,
    *,
    ask: Ask | None,
    clock: Clock,
    redactor: Redactor,
    key: str = "",
) -> SessionEnd:
    """Write what a session leaves, and delete its candidates. `ask`: None without a model: then there is no
    arc. `key`: names this end, if the session may end more than once; else its id. Raises StorageError if the
    store cannot be read or written; then nothing was changed, and the work can be repeated."""
    now = clock.now()
    held = () if session.off_the_record else await book.held(owner, session.session_id)
    profile = await book.profile(owner)
    summarised = Summarised(reason="skipped: the person lets nothing be remembered")
    if profile.enabled:
        summarised = await _summarised(session, ask, redactor)
    facts, semantic_skips = await _facts(book, owner, session, held, summarised.arc, now)
    rules, procedural_skips = _rules(held, now)
    writes = MemoryWrites(
        key=key or session.session_id,
        session_id=session.session_id,
        at=now,
        facts=facts,
        supersedes=await _supersedes(book, owner, facts),
        arc=summarised.arc,
        ends_session=True,
    )
    written = await write_with_rules(book, owner, writes, rules, consolidated_at=now)
    return _counted(written, summarised, rules, semantic_skips, procedural_skips)


async def _summarised(session: EndedSession, ask: Ask | None, redactor: Redactor) -> Summarised:
    try:
        return await summarise(session, ask=ask, redactor=redactor)
    except Exception as error:  # noqa: BLE001 - the candidates are written without a summary
        _log.warning("a session could not be summarised", extra={"error": type(error).__name__})
        return Summarised(reason="skipped: the summary failed")


async def _facts(
    book: MemoryBook,
    owner: str,
    session: EndedSession,
    held: Sequence[Held],
    arc: SessionArc | None,
    now: float,
) -> tuple[tuple[Fact, ...], int]:
    """The facts of the held candidates that are supported, and how many statements are not."""
    if not any(isinstance(one.candidate, FactCandidate) for one in held):
        return (), 0
    try:
        earlier = await book.arcs(owner, limit=MAX_EARLIER_ARCS)
    except StorageError:
        earlier = ()
        _log.warning("earlier sessions cannot be read: candidates are judged without them")
    others = [one for one in earlier if one.session_id != session.session_id]
    facts: list[Fact] = []
    skips = 0
    for one in supported(held, session.turns, arc, others):
        if not one.is_enough:
            skips += 1
            continue
        fact = _fact(one, now)
        if any(says_the_same(fact, known) for known in facts):
            skips += 1
        else:
            facts.append(fact)
    return tuple(facts), skips


def _fact(one: Supported, now: float) -> Fact:
    timing = "promotion" if one.needs_repetition else "session_end"
    return fact_of(one.candidate, one.reason, now, write_timing=timing)


def _rules(held: Sequence[Held], now: float) -> tuple[tuple[Rule, ...], int]:
    made = [consolidated(group, now) for group in clusters(held)]
    rules = tuple(rule for rule in made if rule is not None)
    return rules, len(made) - len(rules)


async def _supersedes(book: MemoryBook, owner: str, facts: Sequence[Fact]) -> tuple[tuple[str, str], ...]:
    if not facts:
        return ()
    try:
        return superseded(facts, await book.facts(owner))
    except StorageError:
        _log.warning("known facts cannot be read: new ones replace none")
        return ()


def _counted(
    written: Written, summarised: Summarised, rules: Sequence[Rule], semantic: int, procedural: int
) -> SessionEnd:
    if written.repeated:
        return SessionEnd(reason="skipped: stored before", repeated=True)
    if written.disabled:
        return SessionEnd(reason=summarised.reason, semantic_skips=semantic, procedural_skips=procedural)
    return SessionEnd(
        semantic_writes=written.facts,
        semantic_bumps=written.renewed,
        semantic_skips=semantic,
        procedural_writes=len(rules),
        procedural_skips=procedural,
        arc=summarised.arc is not None,
        reason=summarised.reason,
    )
