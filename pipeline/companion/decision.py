"""What the dispatcher decides for one message: which mode answers it, on what grounds, in which approach."""

from __future__ import annotations

from typing import Final, Literal, get_args

from pipeline.domain.frozen import dataclass

Mode = Literal["supportive", "reflective", "clarifying", "psychoeducation", "guided_exercise", "closing"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)

Approach = Literal[
    "motivational_interviewing",
    "cbt",
    "act",
    "dbt_skills",
    "grief_support",
    "interpersonal_therapy",
    "pfa",
    "none",
]
APPROACHES: Final[tuple[Approach, ...]] = get_args(Approach)

Source = Literal["exercise", "rules", "model", "fallback"]
"""`exercise`: one is running. `rules`: a phrase of the table. `model`: its answer. `fallback`: neither."""

KEEPS_EXERCISE: Final[frozenset[Mode]] = frozenset(("guided_exercise", "clarifying", "psychoeducation"))
"""The modes that a running exercise outlives: questions in between do not end it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchDecision:
    """The mode of one turn."""

    mode: Mode
    source: Source
    type: str
    """The grounds, as a code: the family of the phrase (`en.leave_taking`), `active_exercise`, `model` …"""
    approach: Approach = "none"
    """The school whose questions the answer uses; only a model chooses one."""
    reasoning: str = ""
    """One sentence for the trace. It may quote the person, so it is in no log and no reply."""
    clears_exercise: bool = False
    """Whether a running exercise ends by this decision."""
