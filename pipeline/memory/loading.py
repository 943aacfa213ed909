"""Load what a turn may know of its owner: `load_memory`, the work of the node of that name."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from pipeline.domain.clock import Clock
from pipeline.domain.errors import ModelError
from pipeline.domain.frozen import dataclass
from pipeline.memory.embedding import Embedder
from pipeline.memory.ports import MemoryBook, Question
from pipeline.memory.recall import SHOWN
from pipeline.memory.values import Fact, MemoryMode, Rule, SessionArc

FETCHED: Final = 20
SHOWN_ARCS: Final = 2
ARC_DAYS: Final = 30
"""Days after its end that an arc is recalled by a question."""
_DAY_S: Final = 86_400.0

RetrievalPath = Literal[
    "incognito",
    "skipped_empty_store",
    "skipped_disabled",
    "words",
    "words_and_vectors",
    "token_recall_after_embed_error",
]
Entry = Mapping[str, Any]
"""{type: "semantic", evidence_quote, category?, subject?, predicate?, object?}, or {type: "episodic",
summary, primary_themes, is_catch_up}; empty optional keys are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedMemory:
    """What a turn is given."""

    entries: tuple[Entry | str, ...] = ()
    """The working memory: arcs, then facts, each best first."""
    rules: tuple[Rule, ...] = ()
    """All active procedural rules."""
    proactive_recall: bool = False
    """Whether the person lets past sessions be mentioned unasked; off, the prompt forbids it."""
    enabled: bool = True
    """Whether the person lets anything be remembered."""
    summary: str = ""
    """One line for the state of the graph; without words of the person."""
    diagnostics: Mapping[str, float | int | str | bool]

    @property
    def lines(self) -> tuple[str, ...]:
        """The working memory as lines of a prompt."""
        return tuple(render_entry(entry) for entry in self.entries)


async def load_memory(
    book: MemoryBook,
    owner: str,
    question: str,
    *,
    first_turn: bool,
    clock: Clock,
    mode: MemoryMode,
    embedder: Embedder | None = None,
) -> LoadedMemory:
    """What is remembered of `owner` and fits `question`, the person's message.

    In incognito `book` is not touched. Without memory of the owner nothing is embedded. If the embedding
    fails, words alone decide. Raises ValueError without an owner, and StorageError.
    """
    if not owner:
        raise ValueError("memory needs an owner: a person or a room")
    started = clock.monotonic()
    if mode == "incognito":
        return LoadedMemory(
            summary="Incognito: nothing is remembered.",
            diagnostics=_diagnostics(started, clock, path="incognito"),
        )
    counts, profile = await asyncio.gather(book.counts(owner), book.profile(owner))
    facts: tuple[Fact, ...] = ()
    arcs: tuple[tuple[SessionArc, bool], ...] = ()
    path: RetrievalPath = "skipped_empty_store" if profile.enabled else "skipped_disabled"
    if profile.enabled and (counts.facts or counts.arcs):
        asked, path = await _asked(question, embedder if counts.facts else None)
        facts, arcs = await asyncio.gather(
            _facts(book, owner, asked), _arcs(book, owner, asked, now=clock.now(), first_turn=first_turn)
        )
    entries = (*(arc_entry(arc, is_catch_up=caught) for arc, caught in arcs), *map(fact_entry, facts))
    return LoadedMemory(
        entries=entries,
        rules=profile.rules if profile.enabled else (),
        proactive_recall=profile.proactive_recall_enabled,
        enabled=profile.enabled,
        summary=f"{len(facts)} facts, {len(arcs)} sessions and {len(profile.rules)} rules recalled.",
        diagnostics=_diagnostics(
            started,
            clock,
            path=path,
            semantic_hits=len(facts),
            semantic_store_size=counts.facts,
            episodic_hits=len(arcs),
            episodic_store_size=counts.arcs,
            procedural_count=len(profile.rules),
            proactive_recall=profile.proactive_recall_enabled,
        ),
    )


async def _asked(question: str, embedder: Embedder | None) -> tuple[Question, RetrievalPath]:
    if embedder is None:
        return Question(text=question), "words"
    try:
        vector = await embedder.question(question)
    except ModelError:
        return Question(text=question), "token_recall_after_embed_error"
    return Question(text=question, vector=vector, vector_model=embedder.model), "words_and_vectors"


async def _facts(book: MemoryBook, owner: str, question: Question) -> tuple[Fact, ...]:
    found = await book.find_facts(owner, question, limit=FETCHED)
    return tuple(fact for fact in found if fact.is_live)[:SHOWN]


async def _arcs(
    book: MemoryBook, owner: str, question: Question, *, now: float, first_turn: bool
) -> tuple[tuple[SessionArc, bool], ...]:
    """The arcs that fit, each with whether it is there to catch up with the last session."""
    found = await book.find_arcs(owner, question, since=now - ARC_DAYS * _DAY_S, limit=SHOWN_ARCS)
    latest = await book.arcs(owner, limit=1) if first_turn else ()
    caught = {_content(arc) for arc in latest}
    others = [arc for arc in found if _content(arc) not in caught]
    return (*((arc, True) for arc in latest), *((arc, False) for arc in others))


def _content(arc: SessionArc) -> tuple[str, tuple[str, ...]]:
    return arc.summary, arc.primary_themes


def _diagnostics(
    started: float, clock: Clock, *, path: RetrievalPath, **found: float | bool
) -> dict[str, float | int | str | bool]:
    none: dict[str, float | int | str | bool] = dict.fromkeys(
        ("semantic_hits", "semantic_store_size", "episodic_hits", "episodic_store_size", "procedural_count"),
        0,
    )
    took = round((clock.monotonic() - started) * 1_000, 2)
    known = {"load_memory_ms": took, "proactive_recall": False, "retrieval_path": path}
    return {**none, **known, **found}


def fact_entry(fact: Fact) -> Entry:
    """The working-memory entry of a fact."""
    return {
        "type": "semantic",
        "evidence_quote": fact.evidence_quote,
        "category": fact.category,
        "subject": fact.subject.identifier,
        "predicate": fact.predicate,
        "object": fact.object.identifier,
    }


def arc_entry(arc: SessionArc, *, is_catch_up: bool) -> Entry:
    """The working-memory entry of an arc."""
    return {
        "type": "episodic",
        "summary": arc.summary,
        "primary_themes": list(arc.primary_themes),
        "is_catch_up": is_catch_up,
    }


def render_entry(entry: Entry | str) -> str:
    """The entry as a line of a prompt; a string as it is."""
    if isinstance(entry, str):
        return entry
    if entry["type"] == "episodic":
        themes: Sequence[str] = entry.get("primary_themes") or ()
        return f"Last session ({', '.join(themes) or 'untagged'}): {entry['summary']}"
    quote = entry["evidence_quote"]
    parts = [entry.get(name) for name in ("subject", "predicate", "object")]
    if not all(parts):
        return f"Previously noted: {quote}"
    tag = f"[{entry['category']}] " if entry.get("category") else ""
    return f"{tag}{' '.join(map(str, parts))} — '{quote}'"
