"""The built-in policy: decide which actions run without approval, until a shield exists.

Without approval run only built-in tools that read, and those that change only the turn owner's own notes and
reminders, the latter only while the turn has read nothing foreign. A person decides on all other actions.
Off the record, no tool runs that changes anything.
"""

from __future__ import annotations

from pipeline.domain.clock import Clock
from pipeline.domain.events import Decision
from pipeline.domain.frozen import dataclass
from pipeline.domain.rates import SlidingWindow
from pipeline.runtime.scope import TurnScope
from pipeline.tools.tool import Tool

PER_MINUTE = 30
"""Actions of one owner. (seed 4: of all owners together, so that one person can lock out the others)"""
_MINUTE_S = 60.0
_MOST_OWNERS = 1_000
"""Above this number, owners without an action in the last minute are removed."""

OTR_WORDS = "{name} is not available off the record: it is not a tool that only reads."
_FOREIGN = "the conversation holds text from elsewhere, so a person has to allow what changes anything"
OTR_ANSWER = "This conversation is off the record and keeps nothing, so that was not done."
_TOO_MANY = "too many actions: more than {most} within a minute; try again in a moment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision on an action. ESCALATE: a person is asked."""

    decision: Decision
    reasoning: str
    tier: int = 0
    confidence: float = 1.0


def allowed_off_the_record(tool: Tool) -> bool:
    """Whether the tool may run off the record."""
    return tool.reads_only and tool.built_in


class Policy:
    """Judges actions. It keeps the times of each owner's actions in the last minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._recent: dict[str, SlidingWindow] = {}

    def judge(self, tool: Tool, scope: TurnScope) -> Verdict:
        """The verdict on a new action of the scope's owner, which counts in the owner's limit."""
        if not self._has_room(scope.owner):
            return Verdict(decision="BLOCK", reasoning=_TOO_MANY.format(most=PER_MINUTE))
        if tool.built_in and tool.reads_only:
            return Verdict(decision="ALLOW", reasoning="it only reads")
        if scope.foreign and not tool.delegates:
            return Verdict(decision="ESCALATE", tier=3, reasoning=_FOREIGN)
        if tool.built_in and tool.own_only:
            return Verdict(decision="ALLOW", reasoning="it changes only what is the person's own")
        return Verdict(decision="ESCALATE", tier=3, reasoning="a person has to allow it")

    def _has_room(self, owner: str) -> bool:
        now = self._clock.monotonic()
        if len(self._recent) >= _MOST_OWNERS:
            self._recent = {key: times for key, times in self._recent.items() if not times.is_empty(now)}
        times = self._recent.setdefault(owner, SlidingWindow(PER_MINUTE, _MINUTE_S))
        if times.wait_s(now) > 0:
            return False
        times.add(now)
        return True
