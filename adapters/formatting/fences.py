"""Close the open code of truncated Markdown. Not a parser."""

from __future__ import annotations

import re

_FENCE = re.compile(r"`{3,}|~{3,}")


def closed_code(markdown: str) -> str:
    """Truncated `markdown` with its code closed, so that text after it is not part of the code."""
    fence = ""
    for line in map(str.strip, markdown.splitlines()):
        opening = _FENCE.match(line)
        if not fence and opening:
            fence = opening[0]
        elif fence and line.startswith(fence) and not line.strip(fence[0]):
            fence = ""
    return f"{markdown}\n{fence}" if fence else markdown
