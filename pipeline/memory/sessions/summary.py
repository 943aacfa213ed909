"""Summarise an ended session by a model, as an arc. Without a model there is none."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, Final

from pipeline.domain.chat import ChatMessage
from pipeline.domain.errors import ModelError
from pipeline.domain.frozen import dataclass
from pipeline.domain.inert_text import inert
from pipeline.domain.json_schema import JsonSchema
from pipeline.llm.structured import Ask, structured
from pipeline.memory.extraction.skipping import SKIPPED
from pipeline.memory.policy.markers import has
from pipeline.memory.policy.small_talk import is_small_talk
from pipeline.memory.sessions.ended import EndedSession
from pipeline.memory.values import MAX_MOOD_CHARS, MAX_SUMMARY_CHARS, MAX_THEMES, SessionArc
from pipeline.redaction.redactor import Redactor

LEAST_TURNS: Final = 2
"""Messages of the person, small talk apart, without which no model is asked."""
MAX_TOKENS: Final = 600
_SHOWN_CHARS: Final = 12_000
_SHOWN_TURN_CHARS: Final = 1_200
_MAX_THEME_CHARS: Final = 60
_MAX_LOOPS: Final = 5
_MAX_LOOP_CHARS: Final = 160
_TEXTS: Final = {"type": "array", "items": {"type": "string"}}
ARC_SCHEMA: Final = JsonSchema(
    name="session_arc",
    schema={
        "type": "object",
        "properties": {
            "too_thin": {"type": "boolean"},
            "summary": {"type": "string"},
            "primary_themes": _TEXTS,
            "mood_opened": {"type": "string"},
            "mood_closed": {"type": "string"},
            "open_loops": _TEXTS,
            "resolved_threads": _TEXTS,
        },
        "required": ["too_thin", "summary", "primary_themes"],
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarised:
    """An arc, or why there is none."""

    arc: SessionArc | None = None
    reason: str = ""


async def summarise(session: EndedSession, *, ask: Ask | None, redactor: Redactor) -> Summarised:
    """The arc of a session. `ask`: None without a model. Raises only what `ask` raises beside ModelError."""
    if reason := _skipped(session, ask):
        return Summarised(reason=f"{SKIPPED}{reason}")
    if ask is None:
        return Summarised(reason=f"{SKIPPED}no model")
    try:
        found = await structured(_question(session), ARC_SCHEMA, ask)
    except ModelError:
        return Summarised(reason=f"{SKIPPED}the model gave no answer of the form")
    if found["too_thin"]:
        return Summarised(reason=f"{SKIPPED}the model finds too little")
    summary = _cut(redactor.text(inert(found["summary"])), MAX_SUMMARY_CHARS)
    if not summary or has("override", summary) or has("secret", summary):
        return Summarised(reason=f"{SKIPPED}the summary is empty, or reads like an order or a secret")
    return Summarised(arc=_arc(session, summary, found, redactor), reason="summarised")


def _skipped(session: EndedSession, ask: Ask | None) -> str:
    if session.off_the_record:
        return "off the record"
    if not session.private:
        return "a room"
    if ask is None:
        return "no model"
    spoken = [turn for turn in session.turns if turn.text.strip() and not is_small_talk(turn.text)]
    return "too few messages" if len(spoken) < LEAST_TURNS else ""


def _question(session: EndedSession) -> tuple[ChatMessage, ...]:
    lines: list[str] = []
    for turn in session.turns:
        for who, text in (("Person", turn.text), ("Assistant", turn.answer)):
            if text.strip():
                lines.append(f"{who}: {_cut(' '.join(text.split()), _SHOWN_TURN_CHARS)}")
    shown, room = [], _SHOWN_CHARS
    for line in reversed(lines):
        room -= len(line)
        if room < 0:
            break
        shown.append(line)
    material = "\n".join(reversed(shown))
    return (
        ChatMessage(role="system", content=_prompt()),
        ChatMessage(role="user", content=f"The conversation:\n<data>\n{material}\n</data>"),
    )


def _arc(session: EndedSession, summary: str, found: dict[str, Any], redactor: Redactor) -> SessionArc:
    def texts(name: str, most: int, chars: int) -> tuple[str, ...]:
        cleaned = (_cut(redactor.text(inert(one)), chars) for one in found.get(name, ()))
        return tuple(one for one in cleaned if one and not has("override", one) and not has("secret", one))[
            :most
        ]

    return SessionArc(
        session_id=session.session_id,
        started_at=session.started_at,
        ended_at=session.ended_at,
        turn_count=len(session.turns),
        primary_themes=texts("primary_themes", MAX_THEMES, _MAX_THEME_CHARS),
        summary=summary,
        mood_opened=_cut(inert(found.get("mood_opened", "")), MAX_MOOD_CHARS),
        mood_closed=_cut(inert(found.get("mood_closed", "")), MAX_MOOD_CHARS),
        open_loops=texts("open_loops", _MAX_LOOPS, _MAX_LOOP_CHARS),
        resolved_threads=texts("resolved_threads", _MAX_LOOPS, _MAX_LOOP_CHARS),
        crisis_level_max=session.crisis_level_max,
    )


def _cut(text: str, chars: int) -> str:
    """`text` within `chars` characters, up to the end of a word."""
    text = " ".join(text.split())
    if len(text) <= chars:
        return text
    cut = text[: chars - 1]
    return (cut[: cut.rfind(" ")] if " " in cut else cut).rstrip() + "\u2026"


@functools.cache
def _prompt() -> str:
    return Path(__file__).with_name("arc_prompt.txt").read_text(encoding="utf-8").strip()
