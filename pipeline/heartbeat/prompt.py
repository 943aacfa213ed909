"""The prompt of one cycle of a heartbeat: why it runs, and what the agent needs to know."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from pipeline.domain.frozen import dataclass
from pipeline.runtime.ports import SkillSummary

SILENT: Final = "NOTHING"
"""The whole answer of an agent that has nothing to tell."""
_SILENT = re.compile(r"\W*NOTHING\W*", re.IGNORECASE)
_INTRODUCTION: Final = (
    "You work by yourself now: this is a heartbeat, and no one has written to you. It is {moment} ({zone}). "
    "This is cycle {cycle} of at most {most}.\n\n{wake}"
)
_RULES: Final = (
    "Work on this now, with your tools. No one can answer questions or allow anything: what would need it, "
    "leave, and say in BLOCKED what you need.\n"
    "Your last words are sent to {whom} as a message: write only what they want to read. If there is nothing "
    f"worth telling, write only {SILENT}. CONTINUE ends this cycle, and the next one begins with your report "
    "and without this conversation; use it only for work that is left and can be done now."
)
_SECTION: Final = "# {title}\n{text}"
_BLOCKED: Final = "What blocked the cycle or the heartbeat before: {blocker}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleFacts:
    """What a cycle begins with."""

    wake: str
    """Why the heartbeat runs: its events, each between marks."""
    now: float
    """Unix time."""
    zone: str
    """An IANA name."""
    cycle: int
    """Counted from 1."""
    most: int
    whom: str = "the user"
    instructions: str = ""
    projects: Sequence[str] = ()
    tasks: Sequence[str] = ()
    skills: Sequence[SkillSummary] = ()
    agents: Sequence[str] = ()
    """The agents of the gateway, one line each."""
    summary: str = ""
    """What the last cycle, or the last heartbeat, has reported."""
    blocker: str = ""


def cycle_prompt(facts: CycleFacts) -> str:
    """The words that the agent gets in place of a person's message."""
    moment = datetime.fromtimestamp(facts.now, ZoneInfo(facts.zone))
    introduction = _INTRODUCTION.format(
        moment=f"{moment:%A, %Y-%m-%d %H:%M}",
        zone=facts.zone,
        cycle=facts.cycle,
        most=facts.most,
        wake=facts.wake,
    )
    sections = (
        ("Instructions", facts.instructions),
        ("Projects", _listed(facts.projects)),
        ("Open tasks", _listed(facts.tasks)),
        ("Skills", _listed([f"{one.name}: {one.description}" for one in facts.skills])),
        ("Agents", _listed(facts.agents)),
        ("The last report", facts.summary),
        ("Blocked", _BLOCKED.format(blocker=facts.blocker) if facts.blocker else ""),
    )
    parts = [_SECTION.format(title=title, text=text) for title, text in sections if text]
    return "\n\n".join((introduction, *parts, _RULES.format(whom=facts.whom)))


def is_silent(answer: str) -> bool:
    """Whether an agent's answer says that there is nothing to tell."""
    return not answer.strip() or _SILENT.fullmatch(answer.strip()) is not None


def _listed(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
