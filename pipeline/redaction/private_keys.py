"""Remove private keys in PEM armour: all lines between the marks, as they arrive, however many.

Text after an opening mark that does not look like key material stays: people write about keys, too.
"""

from __future__ import annotations

import re

from pipeline.redaction.known import MARK

OPENING = "-----BEGIN"
"""A text without it has no key."""
_HEADER = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,2}PRIVATE KEY(?: BLOCK)?-----")
_HEADER_BEGUN = re.compile(r"-----BEGIN[A-Z0-9 ]{0,50}-{0,4}")
_GAP = re.compile(r"(?:\s|\\[rn])*")
_MAX_GAP_CHARS = 64
_RUN = re.compile(r"[A-Za-z0-9+/=]*")
_LINE_CHARS = 20
"""Runs of at least this many characters are key material; words are shorter."""
_FIELD = re.compile(r"[A-Za-z][A-Za-z-]{1,30}:[^\n\"]{0,100}(?=\n)")
_FIELD_BEGUN = re.compile(r"[A-Za-z][A-Za-z-]{0,30}(?::[^\n\"]{0,100})?")


class KeyStream:
    """Redacts a text in chunks, with the same result as for the whole text."""

    def __init__(self) -> None:
        self.held = ""
        """What may be the beginning of a key."""
        self.inside = False
        self._swallowing = False
        """Whether the text so far ends in a line of key material."""
        self._marked = False
        """Whether the output has the mark for the current key already."""
        self._last_may_come = False
        """Whether a shorter line may follow as the last line of the material."""

    def feed(self, text: str) -> str:
        """The redacted text that is safe to show now."""
        if not self.inside and not self.held and "-" not in text:
            return text  # a key begins with a dash
        return self._process(self.held + text, final=False)

    def finish(self) -> str:
        """The rest of the redacted text."""
        rest = self._process(self.held, final=True)
        self.inside = self._swallowing = False
        return rest

    def _process(self, text: str, *, final: bool) -> str:
        out: list[str] = []
        at: int | None = 0
        self.held = ""
        while at is not None and at < len(text):
            inside = self._in_key if self.inside else self._outside
            at = inside(text, at, out, final=final)
        return "".join(out)

    def _outside(self, text: str, at: int, out: list[str], *, final: bool) -> int | None:
        """Output the text before a key. Returns the key's index, or None at the end of the text."""
        header = _HEADER.search(text, at)
        if header is not None:
            out.append(text[at : header.end()])
            self.inside, self._marked, self._last_may_come = True, False, False
            return header.end()
        end = len(text) if final else _begun(text, at)
        out.append(text[at:end])
        self.held = text[end:]
        return None

    def _in_key(self, text: str, at: int, out: list[str], *, final: bool) -> int | None:
        """Skip the next line. Returns the index after it, or None to wait for more text."""
        if self._swallowing:
            end = _end(_RUN, text, at)
            self._swallowing = end == len(text)
            return end
        begin = _end(_GAP, text, at)
        end = _end(_RUN, text, begin)
        if end - begin >= _LINE_CHARS:
            self._swallow(out)
            self._swallowing, self._last_may_come = end == len(text), True
            return end
        unknown = end == len(text) or text[end:] == "\\"
        if unknown and not final and begin - at <= _MAX_GAP_CHARS:
            self.held = text[at:]
            return None
        if end > begin and self._last_may_come:
            self._last_may_come = False
            return end
        if not self._marked and "\n" in text[at:begin]:
            return self._field(text, at, begin, out, final=final)
        self.inside = False
        return at

    def _swallow(self, out: list[str]) -> None:
        if not self._marked:
            out.append(MARK)
        self._marked = True

    def _field(self, text: str, at: int, begin: int, out: list[str], *, final: bool) -> int | None:
        """A line such as `DEK-Info: …` before the material of an encrypted key."""
        field = _FIELD.match(text, begin)
        if field is not None:
            out.append(text[at : field.end()])
            return field.end()
        if not final and _FIELD_BEGUN.fullmatch(text, begin):
            self.held = text[at:]
            return None
        self.inside = False
        return at


def without_key_lines(text: str) -> list[str]:
    """The lines of a whole text, those of key material replaced by the mark, for callers that show only some.

    A line of key material can be recognised only after the opening line.
    """
    lines = text.splitlines()
    if OPENING not in text:
        return lines
    stream = KeyStream()
    given = [stream.feed(f"{line}\n") for line in lines]
    given.append(stream.finish())
    # Text that is held back at the end of a line comes out with the next one.
    return [
        line if line in given[n] + given[n + 1] or line in given[n + 1] else MARK
        for n, line in enumerate(lines)
    ]


def _begun(text: str, at: int) -> int:
    """The index of an incomplete opening mark at the end of `text`; without one, the length of `text`."""
    last = text.rfind(OPENING, at)
    if last >= 0 and _HEADER_BEGUN.fullmatch(text, last):
        return last
    for chars in range(min(len(OPENING) - 1, len(text) - at), 0, -1):
        if OPENING.startswith(text[-chars:]):
            return len(text) - chars
    return len(text)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()
