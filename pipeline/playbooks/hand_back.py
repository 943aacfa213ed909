"""Read what a sub-agent hands back: its summary, its artifact, what it needs, what it would do next.

Never raises: text without the block is the result itself, and its beginning the summary.
"""

from __future__ import annotations

import re
from typing import Final

from pipeline.domain.frozen import dataclass

SUMMARY_CHARS: Final = 500
INSTRUCTIONS: Final = """\
When you have finished, end with this block, and write nothing behind it:

HAND_BACK
Summary: what you did and found, in a few sentences
Artifact: the whole result, if there is one; otherwise none
Needs user input: the one question that the person has to answer before you can finish; otherwise none
Suggested next action: what should come next; otherwise none"""
_BLOCK: Final = re.compile(r"^[ \t>*#`_]*HAND[_ ]BACK[ \t:*`_]*$", re.IGNORECASE | re.MULTILINE)
_FIELD: Final = re.compile(
    r"^[ \t>*#_-]*(Summary|Artifact|Needs user input|Suggested next action)[ \t*_]*:[ \t*_]*",
    re.IGNORECASE | re.MULTILINE,
)
_NOTHING: Final = frozenset({"", "none", "no", "nothing", "n/a", "-", "–"})  # noqa: RUF001 - a dash is meant


@dataclass(frozen=True, slots=True, kw_only=True)
class HandBack:
    """What a sub-agent has handed back; a field without words is empty."""

    summary: str
    artifact: str = ""
    needs: str = ""
    """The question for the person."""
    next_action: str = ""
    result: str = ""
    """What later nodes get: summary and artifact, or the whole text where there is no block."""


def read_hand_back(text: str) -> HandBack:
    """The parts of a sub-agent's last words."""
    blocks = list(_BLOCK.finditer(text))
    inside = text[blocks[-1].end() :] if blocks else text  # the last block counts
    found, first = _fields(inside), _FIELD.search(inside)
    if not blocks and "summary" not in found:
        return HandBack(summary=text.strip()[:SUMMARY_CHARS], result=text.strip())
    before = text[: blocks[-1].start()] if blocks else text[: first.start() if first else 0]
    summary = found.get("summary", "") or before.strip()[:SUMMARY_CHARS]
    artifact = found.get("artifact", "")
    return HandBack(
        summary=summary,
        artifact=artifact,
        needs=found.get("needs user input", ""),
        next_action=found.get("suggested next action", ""),
        result="\n\n".join(part for part in (summary, artifact) if part),
    )


def _fields(text: str) -> dict[str, str]:
    """The fields by their lower-case names; each reaches to the next one, the first of a name counts."""
    marks = list(_FIELD.finditer(text))
    found: dict[str, str] = {}
    for at, mark in enumerate(marks):
        end = marks[at + 1].start() if at + 1 < len(marks) else len(text)
        value = text[mark.end() : end].strip()
        found.setdefault(mark[1].lower(), "" if value.lower().rstrip(".") in _NOTHING else value)
    return found
