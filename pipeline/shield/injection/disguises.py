"""Undo what hides text from a person or from a filter: hidden places of a page, encodings, spelling.

`DECODERS` is the table of encodings. Each has a cheap test, and all take time in proportion to the text. Not
here: look-alike letters and invisible characters inside a word, which `plain_text` undoes.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import quopri
import re
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import unquote_plus

from pipeline.domain.frozen import dataclass

MOST_READINGS = 24
"""Of one text."""
MOST_CHARS = 16_000
"""Of one reading."""
_DEPTH = 2
"""Disguises within one another that are undone."""
_MOST_RUNS = 12
LONGEST_RUN = 8_000
"""Characters of a run that are decoded together."""
_MIN_CHARS = 8
_LETTERS = 0.6
"""A decoded text is one if this share of its characters are letters and spaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revealed:
    """A text that was disguised."""

    text: str
    disguise: str
    hidden: bool
    """Whether a person who sees the page or the message does not see the text."""


def revealed(text: str) -> tuple[Revealed, ...]:
    """The disguised texts in `text`, without those that are not language."""
    found: list[Revealed] = []
    seen = {(text, False)}
    level = [Revealed(text=text, disguise="", hidden=False)]
    for _ in range(_DEPTH):
        deeper: list[Revealed] = []
        for outer in level:
            for one in _once(outer.text):
                hidden = outer.hidden or one.hidden
                if (one.text, hidden) in seen or len(found) >= MOST_READINGS:
                    continue
                seen.add((one.text, hidden))
                names = ", ".join(filter(None, (outer.disguise, one.disguise)))
                deeper.append(Revealed(text=one.text, disguise=names, hidden=hidden))
                found.append(deeper[-1])
        level = deeper
    return tuple(found)


def _once(text: str) -> Iterator[Revealed]:
    for disguise, parts in (("html comment", _comments(text)), ("hidden element", _elements(text))):
        for part in parts:
            if len(part.strip()) >= _MIN_CHARS:
                yield Revealed(text=part[:MOST_CHARS], disguise=disguise, hidden=True)
    for disguise, read in _INVISIBLE.items():
        part = read(text) if not text.isascii() else ""
        if len(part) >= _MIN_CHARS:
            yield Revealed(text=part[:MOST_CHARS], disguise=disguise, hidden=True)
    for disguise, marks, decode in DECODERS:
        if not marks(text):
            continue
        for part in decode(text):
            if part != text and _is_language(part):
                yield Revealed(text=part[:MOST_CHARS], disguise=disguise, hidden=False)


# -- places that a person does not see ------------------------------------------------------------

_HIDING = re.compile(
    r"<[a-z][a-z0-9]{0,15}\b[^<>]{0,300}?(?:(?:display|visibility)\s?:\s?(?:none|hidden)|font-size\s?:\s?[01](?:px|pt|em)?\s?[;\"']"
    r"|opacity\s?:\s?0(?:\.0+)?\s?[;\"']|(?<![\w-])color\s?:\s?(?:white|#fff(?:fff)?\b|transparent)|text-indent\s?:\s?-\d{3}"
    r"|left\s?:\s?-\d{3}|\shidden[\s>=]|aria-hidden\s?=\s?.?true)[^<>]{0,300}>",
    re.IGNORECASE,
)


def _comments(text: str) -> Iterator[str]:
    at = 0
    for _ in range(_MOST_RUNS):
        start = text.find("<!--", at)
        if start < 0:
            return
        end = text.find("-->", start + 4)
        yield text[start + 4 : end if end >= 0 else len(text)]
        if end < 0:
            return
        at = end + 3


def _elements(text: str) -> Iterator[str]:
    if "<" not in text:
        return
    for number, tag in enumerate(_HIDING.finditer(text)):
        if number == _MOST_RUNS:
            return
        end = text.find("<", tag.end())
        yield text[tag.end() : end if end >= 0 else len(text)]


def _tags(text: str) -> str:
    """Unicode tag characters, which repeat ASCII invisibly."""
    return "".join(chr(ord(char) - 0xE0000) for char in re.findall("[\U000e0020-\U000e007e]", text))


def _zero_width(text: str) -> str:
    """Bits as two characters without width."""
    bits = "".join("01"[char in "\u200c\u2060"] for char in re.findall("[\u200b\u200c\u200d\u2060]", text))
    return _from_bits(bits) if len(bits) >= 8 * _MIN_CHARS else ""


def _selectors(text: str) -> str:
    """Bytes as variation selectors."""
    codes = [ord(char) for char in re.findall("[\ufe00-\ufe0f\U000e0100-\U000e01ef]", text)]
    data = bytes(code - 0xFE00 if code < 0xFE10 else code - 0xE0100 + 16 for code in codes)
    return _text(data) if len(data) >= _MIN_CHARS else ""


_INVISIBLE: dict[str, Callable[[str], str]] = {
    "tag characters": _tags,
    "zero-width characters": _zero_width,
    "variation selectors": _selectors,
}

# -- encodings --------------------------------------------------------------------------------------

_MORSE_CODES = (
    *(".-", "-...", "-.-.", "-..", ".", "..-.", "--.", "....", "..", ".---", "-.-", ".-..", "--"),
    *("-.", "---", ".--.", "--.-", ".-.", "...", "-", "..-", "...-", ".--", "-..-", "-.--", "--.."),
    *("-----", ".----", "..---", "...--", "....-", ".....", "-....", "--...", "---..", "----."),
)
"""The 26 letters and the 10 digits, in order."""
_MORSE = {
    code: letter
    for letter, code in zip(
        "abcdefghijklmnopqrstuvwxyz0123456789",
        _MORSE_CODES,
        strict=True,
    )
}
_LEET = str.maketrans("0134578@$!", "oieastbasi")
_ESCAPE = re.compile(r"\\u\{?([0-9a-fA-F]{4})\}?|\\x([0-9a-fA-F]{2})|\\U000([0-9a-fA-F]{5})")


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return ""


def _from_bits(bits: str) -> str:
    return _text(bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits) - 7, 8)))


def _runs(pattern: str, decode: Callable[[str], bytes]) -> Callable[[str], Iterator[str]]:
    compiled = re.compile(pattern)

    def read(text: str) -> Iterator[str]:
        for number, run in enumerate(compiled.finditer(text)):
            if number == _MOST_RUNS:
                return
            try:
                yield _text(decode(run.group()))
            except (ValueError, binascii.Error):
                continue

    return read


def _base64(run: str) -> bytes:
    run = run.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(run[: len(run) - (len(run) % 4 == 1)] + "=" * (-len(run) % 4))


def _base32(run: str) -> bytes:
    run = run.rstrip("=").upper()
    return base64.b32decode(run + "=" * (-len(run) % 8))


IN_B85 = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~")
IN_A85 = frozenset("z" + "".join(map(chr, range(ord("!"), ord("u") + 1))))


def _base85(run: str) -> bytes:
    # An address is in neither alphabet, and a decoder takes longer to find that out.
    if IN_B85.issuperset(run):
        try:
            return base64.b85decode(run)
        except ValueError:
            pass
    run = run.removeprefix("<~").removesuffix("~>")
    if not IN_A85.issuperset(run):
        raise ValueError("no base85")
    return base64.a85decode(run)


def _hex(run: str) -> bytes:
    return bytes.fromhex("".join(re.findall("[0-9a-fA-F]{2}", run)))


def _binary(run: str) -> bytes:
    bits = "".join(filter("01".__contains__, run))
    return bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits) - 7, 8))


def _escaped(text: str) -> Iterator[str]:
    yield _ESCAPE.sub(lambda found: chr(int(next(filter(None, found.groups())), 16)), text)


def _morse(text: str) -> Iterator[str]:
    words = re.split(r"\s*[/|]\s*|\s{3,}", text)
    yield " ".join("".join(_MORSE.get(code, "") for code in word.split()) for word in words)


_LEET_WORD = re.compile(
    r"(?<![\w+/=-])(?=[\w@$!]{0,18}[^\W\d_])(?=[\w@$!]{0,18}[0134578@$!])[\w@$!]{2,20}(?![\w+/=-])"
)


def _leet(text: str) -> Iterator[str]:
    yield _LEET_WORD.sub(lambda word: word.group().translate(_LEET), text)


_SPELLED = re.compile(r"(?<!\w)\w(?:[ ._*\u00b7|/\\-]\w(?!\w)){3,}")
_SPELLED_SHORT = re.compile(r"(?<!\w)\w(?:[ ._*\u00b7|/\\-]\w(?!\w)){1,}")
"""Among spelled words there are short ones too."""
_TWO_GAPS = re.compile(r"[ ._*\u00b7|/\\-]{2,}")


def _spelled(text: str) -> Iterator[str]:
    joined = _SPELLED_SHORT.sub(lambda word: "".join(filter(str.isalnum, word.group())), text)
    yield _TWO_GAPS.sub(" ", joined)


def _decimal(run: str) -> bytes:
    return "".join(map(chr, map(int, re.findall("[0-9]{2,3}", run)))).encode("utf-8", "replace")


def _pattern(pattern: str) -> Callable[[str], object]:
    return re.compile(pattern).search


def _run(classes: str, count: int) -> Callable[[str], object]:
    """Whether a text has a run of so many characters of the class. ASCII is translated and searched for one
    run, which is faster than a pattern."""
    search = re.compile(rf"[{classes}]{{{count}}}").search
    table = table_of(f"[{classes}]")
    run = b"x" * count
    return lambda text: run in text.encode().translate(table) if text.isascii() else search(text)


def table_of(pattern: str) -> bytes:
    """The table that translates the ASCII characters of a class to `x` and all others to a space."""
    return bytes(ord("x" if code < 128 and re.match(pattern, chr(code)) else " ") for code in range(256))


WORD_TABLE = table_of(r"\w")
_NO_DIGITS = bytes(code for code in range(256) if not 48 <= code <= 57)
_FEWEST_CODES = 9
_FEWEST_MARKS = 8


def has_codes(text: str) -> bool:
    """Whether there are numbers in a row that may be codes of characters."""
    if text.isascii() and len(text.encode().translate(None, _NO_DIGITS)) < 2 * _FEWEST_CODES:
        return False
    return _CODES.search(text) is not None


def has_morse(text: str) -> bool:
    """Whether there are dots and dashes in groups."""
    return text.count(".") + text.count("-") >= _FEWEST_MARKS and _MORSE_TEST.search(text) is not None


def _has_spelled(text: str) -> bool:
    if text.isascii() and b"x x x x" not in text.encode().translate(WORD_TABLE):
        return False
    return _SPELLED.search(text) is not None


_CODES = re.compile(r"[0-9]{2,3}[ ,]{1,2}[0-9]{2,3}[ ,]{1,2}[0-9]{2,3}[ ,]")
_MORSE_TEST = re.compile(r"[.-]{1,5} [.-]{1,5} [.-]{1,5} ")


def _words(*words: str) -> Callable[[str], bool]:
    """Whether one of the words is in a text. Most texts hold none of their letters in that order, which is
    found out faster than words are."""
    whole = re.compile(rf"\b(?:{'|'.join(words)})\b")

    def read(text: str) -> bool:
        small = text.lower()
        for word in words:
            if word in small:
                return whole.search(small) is not None
        return False

    return read


ROT13_WORDS = (
    *("gur", "naq", "nyy", "lbh", "lbhe", "sbe", "cerivbhf", "vafgehpgvba", "vafgehpgvbaf", "vtaber"),
    *("cebzcg", "flfgrz", "cnffjbeq", "grkg"),
)
REVERSED_WORDS = (
    *("eht", "dna", "lla", "uoy", "ruoy", "suoiverp", "snoitcurtsni", "erongi", "tpmorp", "metsys"),
    *("drowssap", "laever"),
)
has_rot13, has_reversed = _words(*ROT13_WORDS), _words(*REVERSED_WORDS)
BASE64_CHARS, FEWEST_BASE64 = "A-Za-z0-9+/_-", 16
HEX_CHARS, FEWEST_HEX = r"0-9a-fA-Fx :,\\", 20
FEWEST_BASE85, FEWEST_BITS = 20, 7

DECODERS: tuple[tuple[str, Callable[[str], object], Callable[[str], Iterable[str]]], ...] = (
    ("base64", _run(BASE64_CHARS, FEWEST_BASE64), _runs(r"[A-Za-z0-9+/_-]{16,8000}={0,2}", _base64)),
    (
        "hex",
        # Ten bytes, and the characters between them.
        _run(HEX_CHARS, FEWEST_HEX),
        _runs(r"(?:(?:\\x|0x)?[0-9a-fA-F]{2}[ :,]{0,2}){10,4000}", _hex),
    ),
    ("base32", _run("A-Z2-7", FEWEST_BASE64), _runs(r"[A-Z2-7]{16,8000}={0,6}", _base32)),
    ("base85", _run("!-~", FEWEST_BASE85), _runs(r"[!-~]{20,8000}", _base85)),
    ("binary", _run("01", FEWEST_BITS), _runs(r"(?:[01]{8}[ ,]?){6,4000}", _binary)),
    ("percent encoding", _pattern(r"%[0-9a-fA-F]{2}"), lambda text: (unquote_plus(text),)),
    ("html entities", _pattern(r"&#?[0-9a-zA-Z]{2,8};"), lambda text: (html.unescape(text),)),
    (
        "quoted-printable",
        _pattern(r"=[0-9A-F]{2}"),
        lambda text: (_text(quopri.decodestring(text.encode("utf-8", "replace"))),),
    ),
    (
        "character codes",
        has_codes,
        _runs(r"(?:[0-9]{2,3}[ ,]{1,2}){8,2000}[0-9]{2,3}", _decimal),
    ),
    ("escapes", _pattern(r"\\[uxU][0-9a-fA-F{]"), _escaped),
    ("morse", has_morse, _morse),
    (
        "rot13",
        has_rot13,
        lambda text: (codecs.encode(text, "rot13"),),
    ),
    (
        "reversed text",
        has_reversed,
        lambda text: (text[::-1],),
    ),
    # The digit comes first, because a search for few characters is faster than one for any letter.
    (
        "digits for letters",
        _pattern(r"[0134578@$!](?<=[^\W\d_][0134578@$!])[^\W\d_]"),
        _leet,
    ),
    ("spelled letters", _has_spelled, _spelled),
)
"""Name, a test without which nothing is decoded, and the decoded texts."""


def _is_language(text: str) -> bool:
    if len(text) < _MIN_CHARS:
        return False
    head = text[:2_000]
    return sum(char.isalpha() or char == " " for char in head) >= _LETTERS * len(head) and "\x00" not in head
