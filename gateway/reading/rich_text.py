"""The text of an RTF file. Runs in the reading process only.

Pictures, embedded objects, field codes, comments and styles are not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gateway.reading.failures import ReadingFailed
from gateway.reading.limits import MAX_TEXT_CHARS

_TOKENS = re.compile(
    rb"\\([a-z]{1,32})(-?\d{1,10})?[ ]?"  # a control word with its number
    rb"|\\'([0-9a-fA-F]{2})"  # a byte in the document's encoding
    rb"|\\([^a-z])"  # a control symbol
    rb"|([{}])"
    rb"|[\r\n]+"
    rb"|([^\\{}\r\n]+)"
)
_SILENT = frozenset(
    {
        *(b"fonttbl", b"colortbl", b"stylesheet", b"info", b"pict", b"object", b"objdata", b"themedata"),
        *(b"datastore", b"header", b"footer", b"headerl", b"headerr", b"headerf", b"footerl", b"footerr"),
        *(
            b"footerf",
            b"fldinst",
            b"annotation",
            b"listtable",
            b"listoverridetable",
            b"generator",
            b"rsidtbl",
        ),
        *(b"xmlnstbl", b"latentstyles", b"filetbl", b"revtbl"),
    }
)
_SIGNS: Mapping[bytes, str] = {
    b"par": "\n\n", b"sect": "\n\n", b"page": "\n\n", b"line": "\n", b"row": "\n", b"tab": "\t",
    b"cell": "\t",
    b"emdash": "\u2014", b"endash": "\u2013", b"bullet": "\u2022", b"lquote": "\u2018", b"rquote": "\u2019",
    b"ldblquote": "\u201c", b"rdblquote": "\u201d", b"emspace": " ", b"enspace": " ",
}  # fmt: skip
_SYMBOLS: Mapping[bytes, str] = {
    b"\\": "\\", b"{": "{", b"}": "}", b"~": "\u00a0", b"_": "-", b"\n": "\n\n", b"\r": "\n\n",
}  # fmt: skip
_DEEPEST = 500
_MAGIC = b"{\\rtf"


def is_rich_text(content: bytes) -> bool:
    """Whether it is an RTF file."""
    return content.startswith(_MAGIC)


def rich_text(content: bytes) -> str:
    """The text of an RTF file, of which the end may be missing. Raises ReadingFailed."""
    reader = _Reader()
    for token in _TOKENS.finditer(content):
        reader.take(token)
        if reader.chars > MAX_TEXT_CHARS:
            break
    return "".join(reader.words)


class _Reader:
    def __init__(self) -> None:
        self.words: list[str] = []
        self.chars = 0
        self._groups: list[tuple[bool, int]] = []
        self._silent = False
        self._fallback = 1
        """How many characters after a Unicode one replace it for old programs."""
        self._skip = 0
        self._encoding = "cp1252"

    def take(self, token: re.Match[bytes]) -> None:
        word, number, byte, symbol, brace, text = token.groups()
        if brace == b"{":
            if len(self._groups) >= _DEEPEST:
                raise ReadingFailed("document_damaged")
            self._groups.append((self._silent, self._fallback))
        elif brace == b"}":
            if self._groups:
                self._silent, self._fallback = self._groups.pop()
            self._skip = 0
        elif word is not None:
            self._take_word(word, 1 if number is None else int(number))
        elif symbol == b"*":
            self._silent = True  # a group that only newer programs know
        elif byte is not None:
            self._add(bytes([int(byte, 16)]).decode(self._encoding, "replace"), replaceable=True)
        elif symbol is not None:
            self._add(_SYMBOLS.get(symbol, ""))
        elif text is not None:
            self._add(text.decode(self._encoding, "replace"), replaceable=True)

    def _take_word(self, word: bytes, number: int) -> None:
        if word in _SILENT:
            self._silent = True
        elif word == b"u":
            code = number % 65_536
            self._add(chr(code) if not 0xD800 <= code < 0xE000 else "\ufffd")
            self._skip = self._fallback
        elif word == b"uc":
            self._fallback = min(max(number, 0), 10)
        elif word == b"ansicpg":
            self._encoding = f"cp{number}" if f"cp{number}" in _ENCODINGS else "cp1252"
        elif word == b"bin":
            raise ReadingFailed("document_damaged")  # raw bytes could contain anything
        else:
            self._add(_SIGNS.get(word, ""))

    def _add(self, text: str, *, replaceable: bool = False) -> None:
        if replaceable and self._skip:
            kept = text[self._skip :]
            self._skip -= len(text) - len(kept)
            text = kept
        if not self._silent:
            self.words.append(text)
            self.chars += len(text)


_ENCODINGS = frozenset(
    {"cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp874"}
)
