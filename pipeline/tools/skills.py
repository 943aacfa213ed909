"""Read the folder of skills: instructions for a task, which the model loads when it needs them.

A skill is a folder with a SKILL.md: between two lines of `---` its `name: …` and `description: …`, after
them the instructions. An invalid skill is left out, with the reason in the log. No skill is executed.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path

from pipeline.domain.clock import Clock
from pipeline.domain.frozen import dataclass
from pipeline.runtime.ports import SkillSummary
from pipeline.tools.confine import read_text
from pipeline.tools.folders import followed
from pipeline.tools.tool import ToolFailed

_log = logging.getLogger(__name__)

FILE = "SKILL.md"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_LONGEST_DESCRIPTION = 1_024
"""Characters."""
_LONGEST_BODY = 20_000
_MOST_SKILLS = 50
_LOOK_AGAIN_S = 1.0
_FENCE = "---"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Skill:
    summary: SkillSummary
    body: str


class SkillFolder:
    """The `SkillBook` of a folder. Changes take effect within a second."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._looked_at: float | None = None
        self._seen: dict[str, tuple[int, int]] = {}
        """The time and size of each folder's file, which show a change."""
        self._skills: dict[str, _Skill] = {}
        self._summaries: tuple[SkillSummary, ...] = ()
        self._problems: tuple[str, ...] = ()

    def summaries(self) -> tuple[SkillSummary, ...]:
        """See `SkillBook.summaries`."""
        self._look()
        return self._summaries

    def body(self, name: str) -> str | None:
        """See `SkillBook.body`."""
        self._look()
        skill = self._skills.get(name)
        return None if skill is None else skill.body

    def problems(self) -> tuple[str, ...]:
        """The file and the reason of each skill that is left out, one line each."""
        self._look()
        return self._problems

    def _look(self) -> None:
        now = self._clock.monotonic()
        if self._looked_at is not None and now - self._looked_at < _LOOK_AGAIN_S:
            return
        self._looked_at = now
        seen = _stamps(self._folder)
        if seen != self._seen:
            self._seen = seen
            self._read()

    def _read(self) -> None:
        skills: dict[str, _Skill] = {}
        problems: list[str] = []
        for name in list(self._seen)[:_MOST_SKILLS]:
            path = self._folder / name / FILE
            try:
                skills[name] = _parsed(name, read_text(followed(path), most_bytes=4 * _LONGEST_BODY))
            except ToolFailed as failure:
                problems.append(f"{path}: {failure}")
        if len(self._seen) > _MOST_SKILLS:
            problems.append(f"{self._folder}: only the first {_MOST_SKILLS} skills are used")
        for problem in problems:
            _log.warning("a skill is left out", extra={"reason": problem})
        self._skills, self._problems = skills, tuple(problems)
        self._summaries = tuple(skill.summary for skill in skills.values())


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    stamps: dict[str, tuple[int, int]] = {}
    try:
        names = sorted(one.name for one in folder.iterdir() if one.is_dir() and not one.name.startswith("."))
    except OSError:
        return stamps
    for name in names:
        try:
            found = (folder / name / FILE).stat()
            stamps[name] = (found.st_mtime_ns, found.st_size)
        except OSError:
            stamps[name] = (0, 0)
    return stamps


def _parsed(folder: str, text: str) -> _Skill:
    """The skill in `text`. Raises ToolFailed for an invalid one."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != _FENCE or _FENCE not in (line.strip() for line in lines[1:]):
        raise ToolFailed("it must begin with name and description between two lines of ---")
    end = next(number for number, line in enumerate(lines) if number and line.strip() == _FENCE)
    head = _head(lines[1:end])
    name, description = head.get("name", ""), head.get("description", "")
    body = "\n".join(lines[end + 1 :]).strip()
    if not _NAME.fullmatch(name):
        raise ToolFailed("name: small letters, digits and hyphens, at most 64, with no hyphen in front")
    if name != folder:
        raise ToolFailed(f"name: it is {name}, and the folder's name is {folder}; they must be the same")
    if not 0 < len(description) <= _LONGEST_DESCRIPTION:
        raise ToolFailed(f"description: it must have 1 to {_LONGEST_DESCRIPTION} characters")
    if not 0 < len(body) <= _LONGEST_BODY:
        raise ToolFailed(f"the instructions must have 1 to {_LONGEST_BODY} characters")
    return _Skill(summary=SkillSummary(name=name, description=description), body=body)


def _head(lines: list[str]) -> dict[str, str]:
    head: dict[str, str] = {}
    for line in lines:
        key, colon, value = line.partition(":")
        key, value = key.strip(), value.strip()
        if not line.strip():
            continue
        if not colon or key in head:
            raise ToolFailed(f"“{line.strip()[:60]}” is no line such as name: value")
        # Values are often quoted because of their colons.
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        head[key] = value[1:-1] if quoted else value
    return head
