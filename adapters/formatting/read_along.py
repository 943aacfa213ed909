"""An answer read out while it is written: which of its words are next, and which cannot change any more.

Pure: it is shown the answer as far as it is written, again and again, and gives each sentence once. Not here:
who asks, the voice, and how often it is asked, which costs one parse of the text.
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
"""Lines of a table until its first row is there: the header, the line below it, the row."""


class ReadAlong:
    """What was read of one answer so far. `spoken` gives the words that are said for Markdown."""

    def __init__(self, spoken: Callable[[str], str] = spoken_text) -> None:
        self._spoken = spoken
        self._said: list[str] = []
        self._seen = ""
        """The answer when it was parsed last."""
        self._rest: tuple[str, ...] = ()
        """The sentences that were settled then and are not read yet."""

    def next_part(self, markdown: str, *, ended: bool, paused: bool = False) -> str:
        """The words to be read next, up to 300 characters; empty where none are settled, or none are left.

        `markdown` is the answer so far, with `ended` the whole of it. With `paused` nothing follows for now,
        so that a last sentence with its full stop counts as settled. Where `markdown` differs from what it
        was when it was read, nothing is repeated: the sentences follow that were not among what was read.
        """
        # What is settled stays so while the answer grows; to parse all of it for each part would take long.
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
        """The sentences that stay as they are whatever is written behind `markdown`."""
        if ended:
            return sentences(self._spoken(markdown))
        sure = markdown[: _open_part(markdown)]
        found = sentences(self._spoken(sure))
        whole = paused and len(sure) == len(markdown) and markdown.rstrip()[-1:] in {*FULL_STOPS, ":"}
        return found if whole else found[:-1]


def _open_part(markdown: str) -> int:
    """Where the part begins whose meaning the next characters may change: a table, a link or a picture."""
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
    """Whether what begins with a bracket is whole, or no link."""
    _, _, address = link.partition("]")
    return bool(address) and (address[0] != "(" or ")" in address)
