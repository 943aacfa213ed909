"""Read an answer aloud while it is written: choose the next text that can no longer change.

Pure: it gets the present answer repeatedly, and returns each sentence once. Not here: the caller,
the speech synthesis, and the frequency of calls (each parses the text).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from adapters.formatting.sentences import FULL_STOPS, MAX_CHARS, sentences
from adapters.formatting.spoken import FIRST_PART_CHARS, spoken_text

_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_DELIMITER_ROW = re.compile(r"[ \t|:-]+")
_FEWEST_ROWS = 3
"""Lines of a table up to its first row: the header, the line below it, the row."""


class ReadAlong:
    """The state of reading one answer. `spoken` returns the text to say for Markdown."""

    def __init__(self, spoken: Callable[[str], str] = spoken_text) -> None:
        self._spoken = spoken
        self._said: list[str] = []
        self._seen = ""
        """The answer at the last parse."""
        self._rest: tuple[str, ...] = ()
        """The sentences that were final then and are not read yet."""

    def next_part(self, markdown: str, *, ended: bool, paused: bool = False) -> str:
        """The next text to read, up to 300 characters; empty where none is final, or none is left.

        `markdown` is the answer so far, with `ended` the whole of it. With `paused` nothing follows for now,
        so that a last sentence with its full stop counts as final. Where `markdown` has changed since
        it was read, nothing is repeated: the sentences that were not read before follow.
        """
        # Final sentences stay final while the answer grows; parsing all of it for each part would be slow.
        if not self._rest or not markdown.startswith(self._seen):
            self._seen = markdown
            self._rest = self._unsaid(self._settled(markdown, ended=ended, paused=paused))
        rest = self._rest
        part = ""
        for taken, sentence in enumerate(rest):
            longer = f"{part} {sentence}".strip()
            alone = not self._said and len(part) >= FIRST_PART_CHARS
            if part and (alone or len(longer) > MAX_CHARS):
                return self._take(taken, part)
            part = longer
        if not (self._said or ended or paused) and len(part) < FIRST_PART_CHARS:
            self._rest = ()
            return ""
        return self._take(len(rest), part)

    def _take(self, count: int, part: str) -> str:
        self._said += self._rest[:count]
        self._rest = self._rest[count:]
        return part

    def _unsaid(self, settled: tuple[str, ...]) -> tuple[str, ...]:
        said = tuple(self._said)
        if settled[: len(said)] == said:
            return settled[len(said) :]
        left = Counter(said)
        unsaid = []
        for sentence in settled:
            if left[sentence]:
                left[sentence] -= 1
            else:
                unsaid.append(sentence)
        return tuple(unsaid)

    def _settled(self, markdown: str, *, ended: bool, paused: bool) -> tuple[str, ...]:
        """The sentences that cannot change when text is added to `markdown`."""
        if ended:
            return sentences(self._spoken(markdown))
        sure = markdown[: _open_part(markdown)]
        found = sentences(self._spoken(sure))
        whole = paused and len(sure) == len(markdown) and markdown.rstrip()[-1:] in {*FULL_STOPS, ":"}
        return found if whole else found[:-1]


def _open_part(markdown: str) -> int:
    """The start of the part whose meaning the next characters can change: a table, a link or a picture."""
    breaks = [found.end() for found in _BLANK_LINE.finditer(markdown)]
    block = breaks[-1] if breaks else 0
    *lines, growing = markdown[block:].split("\n")
    table = len(lines) > 1 and "|" in lines[0] and _DELIMITER_ROW.fullmatch(lines[1].strip()) is not None
    maybe = "|" in growing or any("|" in line for line in lines[-2:])
    if (table and len(lines) < _FEWEST_ROWS) or (maybe and not table):
        return block
    bracket = markdown.rfind("[", max(block, len(markdown) - MAX_CHARS))
    if bracket < 0 or _is_closed(markdown[bracket:]):
        return len(markdown)
    return bracket - 1 if markdown[bracket - 1 : bracket] == "!" else bracket


def _is_closed(link: str) -> bool:
    """Whether a text that begins with a bracket is a complete link, or no link."""
    _, _, address = link.partition("]")
    return bool(address) and (address[0] != "(" or ")" in address)
