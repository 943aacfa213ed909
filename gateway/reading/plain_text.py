"""Decode a text file, tell its kind, and cut texts into pieces. Runs in the reading process only."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from charset_normalizer import from_bytes

from gateway.reading.limits import MAX_TITLE_CHARS, PIECE_CHARS
from pipeline.domain.visible import visible_text

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_GUESSED_FROM = 32_768
"""Bytes: the guess takes time proportional to them, for each of a hundred encodings."""
_LIKELY = [
    *(
        "cp1252",
        "cp1250",
        "cp1251",
        "cp1253",
        "cp1254",
        "cp1255",
        "cp1256",
        "cp1257",
        "iso8859_2",
        "iso8859_15",
    ),
    *("koi8_r", "cp932", "gb18030", "big5", "euc_jp", "euc_kr", "cp874"),
]
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MOST_CONTROL = 0.01
_HTML = re.compile(
    r"\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--(?:(?!-->).){0,2000}-->\s*)*<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_DELIMITERS = ",;\t|"
_SNIFFED_ROWS = 20
_TABLES = {".csv": ",;\t|", ".tsv": "\t"}
_TABLE_MIMES = ("text/csv", "text/tab-separated-values", "application/csv")
_BLANK_LINES = re.compile(r"\n{3,}")
_BEFORE_TAB = re.compile(r" {1,100}\t")
_BREAK = re.compile(r"\n[ \t]*\n")


def prepare() -> None:
    """Load the encodings: afterwards no file can be opened."""
    for name in (*_LIKELY, "utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "latin-1", "cp437"):
        codecs.lookup(name)
    csv.reader(["a,b"])
    decoded("Grüße".encode("cp1252"))


def decoded(content: bytes) -> str | None:
    """The text of a file; None if it is no text.

    In this order: by its byte-order mark, as UTF-8, as UTF-16 without a mark, by a guess from its beginning.
    """
    name = next((name for mark, name in _MARKS if content.startswith(mark)), "")
    if name:
        return content.decode(name, "replace")
    sample = content[:_GUESSED_FROM]
    if wide := _wide(sample):
        return content.decode(wide, "replace")
    if len(_CONTROL.findall(sample)) > _MOST_CONTROL * len(sample):
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        pass
    best = from_bytes(sample, cp_isolation=_LIKELY, threshold=0.4).best()
    return content.decode(best.encoding if best else "cp1252", "replace")


def is_html(text: str) -> bool:
    """Whether a text begins as a page does."""
    return _HTML.match(text[:8_192]) is not None


def delimiter_of(text: str, name: str, mime: str) -> str:
    """The character between the columns of a table; empty if the text is none.

    Its first rows have the same number of columns: at least two if the name or the type says that it is a
    table, else at least four.
    """
    suffix = PurePosixPath(name.lower()).suffix
    named = suffix in _TABLES or mime.lower().partition(";")[0] in _TABLE_MIMES
    lines = text[:65_536].splitlines()[: _SNIFFED_ROWS + 1]
    for delimiter in _TABLES.get(suffix, _DELIMITERS):
        if not named and delimiter != "\t" and len(lines) < 3:
            continue
        try:
            counts = {len(row) for row in csv.reader(lines[:_SNIFFED_ROWS], delimiter=delimiter) if row}
        except csv.Error:
            continue
        if len(counts) == 1 and counts.pop() >= (2 if named else 4):
            return delimiter
    return ""


def pieces(text: str) -> Iterator[str]:
    """Pieces of about 3,000 characters, cut between paragraphs, or else between lines or words."""
    start = 0
    while True:
        # Blanks at the beginning of a line belong to the text, those where a line is cut do not.
        while text[start : start + 1] == "\n" or (
            text[start : start + 1] == " " and text[start - 1 : start].strip()
        ):
            start += 1
        if start >= len(text):
            return
        end = _end_of_piece(text, start)
        yield text[start:end].rstrip()
        start = end


def table_pieces(text: str) -> Iterator[str]:
    """Pieces of about 3,000 characters in whole lines; all begin with the table's first line."""
    lines = io.StringIO(text)
    header = lines.readline()[:PIECE_CHARS].rstrip("\n")
    rows, size = [header], len(header)
    for line in lines:
        for row in pieces(line) if len(line) > PIECE_CHARS else (line.rstrip("\n"),):
            if size + len(row) > PIECE_CHARS and len(rows) > 1:
                yield "\n".join(rows)
                rows, size = [header], len(header)
            rows.append(row)
            size += len(row) + 1
    yield "\n".join(rows)


def tidy(text: str) -> str:
    """`text` without invisible characters and trailing blanks."""
    return "\n".join(line.rstrip() for line in visible_text(text).split("\n")).strip("\n")


def laid_out(text: str) -> str:
    """As `tidy`, with at most one blank line in a row and without blanks before tabs."""
    return _BLANK_LINES.sub("\n\n", tidy(_BEFORE_TAB.sub("\t", text)))


def one_line(title: str) -> str:
    """A title, shortened and without invisible characters."""
    return " ".join(visible_text(title[: 4 * MAX_TITLE_CHARS]).split())[:MAX_TITLE_CHARS]


def _end_of_piece(text: str, start: int) -> int:
    limit = start + PIECE_CHARS
    if limit >= len(text):
        return len(text)
    least = start + PIECE_CHARS // 2
    gaps = [found.start() for found in _BREAK.finditer(text, least, limit)]
    if gaps:
        return gaps[-1]
    for mark in ("\n", ". ", " "):
        at = text.rfind(mark, least, limit)
        if at > 0:
            return at + 1
    return limit


def _wide(sample: bytes) -> str:
    """UTF-16 without a byte-order mark: every second byte of Western text is zero."""
    if len(sample) < 4:
        return ""
    even, odd = sample[0::2], sample[1::2]
    if odd.count(0) > 0.7 * len(odd) and even.count(0) < 0.1 * len(even):
        return "utf-16-le"
    if even.count(0) > 0.7 * len(even) and odd.count(0) < 0.1 * len(odd):
        return "utf-16-be"
    return ""
