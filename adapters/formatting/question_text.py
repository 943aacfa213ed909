"""Shorten the text of a question about an action, where a message or a screen cannot show all of it.

The gateway writes it line by line, and no value contains a line end (see `pipeline.tools.shown`); so each
line can be shortened separately.
"""

from __future__ import annotations

WHOLE_CHARS = 1_500
"""Texts up to this length are shown unchanged."""
FILE_NAME = "action.txt"
"""The name of the file with the whole text."""
_LINE_CHARS = 400
_HEAD_CHARS = 250
_TAIL_CHARS = 100
_MOST_LINES = 16
_LAST_LINES = 2
"""The last argument and the hash."""


def shortened(words: str) -> str:
    """`words` in at most about 7,000 characters, with a count in place of omitted text; unchanged
    where it is short enough to be read."""
    if len(words) <= WHOLE_CHARS:
        return words
    lines = [_line(line) for line in words.split("\n")]
    if len(lines) > _MOST_LINES:
        head = lines[: _MOST_LINES - _LAST_LINES]
        left_out = f"[… {len(lines) - _MOST_LINES} more lines …]"
        lines = [*head, left_out, *lines[-_LAST_LINES:]]
    return "\n".join(lines)


def _line(line: str) -> str:
    if len(line) <= _LINE_CHARS:
        return line
    left_out = len(line) - _HEAD_CHARS - _TAIL_CHARS
    return f"{line[:_HEAD_CHARS]}[… {left_out} more characters …]{line[-_TAIL_CHARS:]}"
