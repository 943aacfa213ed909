"""Checks the subject of a commit message: `area: imperative verb …`, at most 72 characters.

python -m tools.commit_subject FILE    what git calls as the hook `commit-msg`
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

LONGEST = 72
_FORM = re.compile(r"(?P<area>[a-z][a-z0-9 /_-]*): (?P<verb>[a-z]+)\b.*\S")
_NO_VERBS = frozenset(
    {"a", "an", "the", "this", "that", "it", "what", "when", "where", "each", "every", "all"}
)
_MADE_BY_GIT = re.compile(r"(Merge|Revert|fixup!|squash!) ")


def problem(subject: str) -> str:
    """What is wrong with a subject, as a sentence; empty where nothing is."""
    if _MADE_BY_GIT.match(subject):
        return ""
    form = _FORM.fullmatch(subject)
    if form is None:
        return "write `area: imperative verb …`, for example `commands: answer unknown commands with a hint`"
    if len(subject) > LONGEST:
        return f"{len(subject)} characters; at most {LONGEST} are shown"
    verb = form["verb"]
    if verb in _NO_VERBS or (
        verb.endswith(("ed", "ing")) and verb not in ("embed", "feed", "bring", "string")
    ):
        return f"begin with a verb in the imperative, not with {verb!r}"
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the first line of the file; 1 with the reason on stderr where it is wrong."""
    (name,) = sys.argv[1:] if arguments is None else arguments
    subject = (Path(name).read_text(encoding="utf-8").splitlines() or [""])[0]
    reason = problem(subject)
    if reason:
        sys.stderr.write(f"commit subject: {reason}\n")
    return 1 if reason else 0


if __name__ == "__main__":
    sys.exit(main())
