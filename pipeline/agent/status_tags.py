"""Parse the DONE, BLOCKED and CONTINUE tags of a model's answer, and remove them from what people see.

The model writes the tags, so their form is not trusted: they may be lower case, unclosed, several, or quoted
in a code fence, where they mean nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from pipeline.domain.frozen import dataclass

Status = Literal["done", "blocked", "continue", "in_progress"]

NUDGE = (
    "Your last message did not say whether you are finished. Do not repeat it. Reply with exactly one of"
    " <AGENT_DONE>, <AGENT_BLOCKED> or <AGENT_CONTINUE>, closed, as the instructions say."
)
"""Sent once to a model that declares nothing and calls no tool; as a user message, because providers merge
or drop late system messages."""
DECLARING = """\
End every message that calls no tool with exactly one of these wrappers, behind the words for the user:
<AGENT_DONE><KEY_RESULT>the result in one sentence</KEY_RESULT></AGENT_DONE> when the task is finished,
<AGENT_BLOCKED><BLOCKER_REASON>what is in the way</BLOCKER_REASON><UNBLOCK_REQUIREMENTS>what you need from \
the user</UNBLOCK_REQUIREMENTS></AGENT_BLOCKED> when you cannot continue without the user,
<AGENT_CONTINUE><STATUS_REPORT>what is done and what comes next</STATUS_REPORT></AGENT_CONTINUE> when you \
will continue by yourself. The user never sees the wrappers."""
MAX_NOTE_CHARS = 240
"""The longest status note."""

_KINDS: tuple[tuple[Status, str], ...] = (
    ("blocked", "AGENT_BLOCKED"),
    ("done", "AGENT_DONE"),
    ("continue", "AGENT_CONTINUE"),
)
"""In the order of precedence when a message has several."""
_PROTOCOL = (
    "AGENT_DONE",
    "AGENT_BLOCKED",
    "AGENT_CONTINUE",
    "KEY_RESULT",
    "BLOCKER_REASON",
    "UNBLOCK_REQUIREMENTS",
    "STATUS_REPORT",
    "STATUS_MESSAGE",
)
_OPENING = re.compile(r"<(AGENT_(?:DONE|BLOCKED|CONTINUE))>", re.IGNORECASE)
_ANY_TAG = re.compile(rf"</?(?:{'|'.join(_PROTOCOL)})>", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})", re.MULTILINE)
_LONGEST_TAG = max(len(name) for name in _PROTOCOL) + 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusTags:
    """What a message says about the state of the work."""

    status: Status
    prose: str
    """The text outside of the wrappers."""
    report: str = ""
    """DONE's key result, or CONTINUE's status report."""
    blocker_reason: str = ""
    unblock_requirements: str = ""

    def through(self, change: Callable[[str], str]) -> StatusTags:
        """The same with each of its texts changed."""
        if self.status == "in_progress":
            prose = change(self.prose)
            return self if prose == self.prose else replace(self, prose=prose)
        return StatusTags(
            status=self.status,
            prose=change(self.prose),
            report=change(self.report),
            blocker_reason=change(self.blocker_reason),
            unblock_requirements=change(self.unblock_requirements),
        )

    @property
    def visible(self) -> str:
        """The text that people read: the prose, or the wrapper's content where there is no prose; empty only
        for an empty message."""
        match self.status:
            case "blocked":
                parts = (self.prose, self.blocker_reason, self.unblock_requirements)
                return "\n\n".join(part for part in parts if part) or "Blocked."
            case "continue":
                return self.prose or self.report or "Continuing."
            case "done":
                return self.prose or self.report or "Done."
            case _:
                return self.prose

    @property
    def note(self) -> str:
        """The status in one line."""
        line = " ".join((self.report or self.blocker_reason or self.prose).split())
        return line if len(line) <= MAX_NOTE_CHARS else f"{line[: MAX_NOTE_CHARS - 1]}…"


def declared(text: str) -> StatusTags:
    """Parse a whole message. Never raises: text that is no wrapper is prose."""
    if "<" not in text:
        return StatusTags(status="in_progress", prose=text.strip())
    prose, found = _read(text)
    words = prose.strip()
    for status, _ in _KINDS:
        if status in found:
            return _declared(status, found[status], words)
    return StatusTags(status="in_progress", prose=words)


class VisibleStream:
    """Filters a streamed message: returns the text that people may see, never any part of a wrapper.

    It holds back text that may be the beginning of a tag, one word at most.
    """

    def __init__(self) -> None:
        self._text = ""
        self._code = _Code("")
        self._given = 0
        self._hidden = False

    def feed(self, piece: str) -> str:
        """The text that is certainly prose by now."""
        is_given = self._given == len(self._text)
        self._text += piece
        if is_given and "<" not in piece:
            self._given = len(self._text)
            return piece  # most pieces: no tag has begun, and none begins here
        self._code.grow(self._text)
        return self._give(self._certain_end())

    def finish(self) -> str:
        """The rest of the visible text when the message has ended, including text after the wrappers."""
        rest = self._text[self._given :]
        if "<" in rest:
            rest, _ = _read(self._text, self._given)
        self._given = len(self._text)
        return rest

    def _give(self, end: int) -> str:
        if self._hidden or end <= self._given:
            return ""
        opening = _next_opening(self._text, self._given, self._code)
        if opening is not None and opening.start() <= end:
            # Prose may follow a closed wrapper; `finish` returns it.
            self._hidden, end = True, opening.start()
        start, self._given = self._given, end
        return _without_stray_tags(self._text, self._code, start, end)

    def _certain_end(self) -> int:
        last = self._text.rfind("<", max(self._given, len(self._text) - _LONGEST_TAG))
        if last < 0 or ">" in self._text[last:]:
            return len(self._text)
        tail = self._text[last + 1 :].lstrip("/").upper()
        return last if any(name.startswith(tail) for name in _PROTOCOL) else len(self._text)


def _read(text: str, at: int = 0) -> tuple[str, dict[Status, str]]:
    """The text from `at` on outside of wrappers, and the content of the first wrapper of each kind."""
    code = _Code(text)
    found: dict[Status, str] = {}
    prose: list[str] = []
    while (opening := _next_opening(text, at, code)) is not None:
        prose.append(_without_stray_tags(text, code, at, opening.start()))
        body, at = _body(text, opening)
        found.setdefault(_status_of(opening), body)
    prose.append(_without_stray_tags(text, code, at))
    return "".join(prose), found


class _Code:
    """Finds fenced code in a text. It scans only when a tag is found, because most texts have no code, and
    scans each line once, however often the text grows."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._scanned = 0
        """The beginning of the line that may still grow."""
        self._spans: list[tuple[int, int]] = []
        """From a fence to the one that closes it."""
        self._opened: tuple[int, str] | None = None

    def grow(self, text: str) -> None:
        """Set the text, which begins with the text so far."""
        self._text = text

    def holds(self, place: int) -> bool:
        """Whether the character at `place` is code. A fence that is not closed reaches to the end."""
        self._scan()
        span = bisect_right(self._spans, (place, len(self._text))) - 1
        if span >= 0 and place < self._spans[span][1]:
            return True
        opened, last = self._opened, _FENCE.match(self._text, self._scanned)
        if opened is not None:
            closed = last is not None and _closes(last[1], opened[1])
            return opened[0] <= place and not (last is not None and closed and place >= last.end())
        return last is not None and place >= last.start()

    def _scan(self) -> None:
        """Scan the new complete lines."""
        end = self._text.rfind("\n", self._scanned) + 1
        if end == 0:
            return
        for match in _FENCE.finditer(self._text, self._scanned, end):
            if self._opened is None:
                self._opened = (match.start(), match[1])
            elif _closes(match[1], self._opened[1]):
                self._spans.append((self._opened[0], match.end()))
                self._opened = None
        self._scanned = end


def _closes(mark: str, opening: str) -> bool:
    return mark[0] == opening[0] and len(mark) >= len(opening)


def _next_opening(text: str, at: int, code: _Code) -> re.Match[str] | None:
    """The next opening wrapper at or after `at` outside of fenced code."""
    return next((match for match in _OPENING.finditer(text, at) if not code.holds(match.start())), None)


def _body(text: str, opening: re.Match[str]) -> tuple[str, int]:
    """The wrapper's content, and where it ends: at the end of the text where it is not closed."""
    closing = re.compile(rf"</{opening.group(1)}>", re.IGNORECASE).search(text, opening.end())
    if closing is None:
        return text[opening.end() :], len(text)
    return text[opening.end() : closing.start()], closing.end()


def _status_of(opening: re.Match[str]) -> Status:
    name = opening.group(1).upper()
    return next(status for status, tag in _KINDS if tag == name)


def _declared(status: Status, body: str, prose: str) -> StatusTags:
    plain = _without_stray_tags(body, _Code(body))
    first_line = next((line.strip() for line in plain.splitlines() if line.strip()), "")
    if status == "blocked":
        reason = _inner(body, "BLOCKER_REASON")
        needs = _inner(body, "UNBLOCK_REQUIREMENTS")
        if not reason and not needs:
            reason = first_line
        return StatusTags(status=status, prose=prose, blocker_reason=reason, unblock_requirements=needs)
    names = ("KEY_RESULT",) if status == "done" else ("STATUS_REPORT", "STATUS_MESSAGE")
    report = next((inner for name in names if (inner := _inner(body, name))), first_line)
    return StatusTags(status=status, prose=prose, report=report)


def _inner(body: str, name: str) -> str:
    """The first such tag's content, up to its end or to the next tag."""
    match = re.search(rf"<{name}>(.*?)(?:</?[A-Z_]+>|\Z)", body, re.IGNORECASE | re.DOTALL)
    return "" if match is None else match.group(1).strip()


def _without_stray_tags(text: str, code: _Code, start: int = 0, end: int | None = None) -> str:
    """`text` from `start` to `end` without single protocol tags, except in code."""
    end = len(text) if end is None else end
    kept: list[str] = []
    for match in _ANY_TAG.finditer(text, start, end):
        if not code.holds(match.start()):
            kept.append(text[start : match.start()])
            start = match.end()
    return "".join((*kept, text[start:end]))
