"""The cells of a workbook (.xlsx) as lines with tabs. Runs in the reading process only.

A formula is its last result, or itself where the file has none. Nothing is computed, and whatever the
workbook refers to is not opened.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from gateway.reading.limits import MAX_TEXT_CHARS
from gateway.reading.office_package import relations_of
from gateway.reading.xml_events import EnoughRead, parse
from gateway.reading.zip_contents import ZipContents
from pipeline.domain.frozen import dataclass

_MOST_SHEETS = 200
_WIDEST = 256
"""Columns that are read: an empty cell between two full ones costs a tab."""
_DATE_FORMATS = frozenset({*range(14, 23), *range(45, 48)})
"""The numbers of the built-in formats for dates and times."""
_DATE_LETTERS = re.compile(r"[ymdhs]", re.IGNORECASE)
_NOT_FORMAT = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')
_FIRST_DAY = datetime(1899, 12, 30)  # noqa: DTZ001 - a workbook has no time zone
_LAST_DAY = 2_958_465
_LETTERS = re.compile(r"[A-Z]{1,3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One sheet of a workbook."""

    name: str
    text: str
    hidden: bool


def read_sheets(contents: ZipContents, part: str) -> tuple[list[Sheet], bool]:
    """The sheets in their order, and whether text at the end is missing. Raises ReadingFailed."""
    related = relations_of(contents, part)
    by_kind = {one.kind: one.part for one in related.values()}
    strings = _shared_strings(contents.read(by_kind.get("sharedStrings", "")))
    dates = _date_styles(contents.read(by_kind.get("styles", "")))
    listed: list[Mapping[str, str]] = []

    def on_start(name: str, attributes: Mapping[str, str]) -> None:
        if name == "sheet":
            listed.append(attributes)

    parse(contents.read(part), on_start, _ignore, _ignore)
    sheets: list[Sheet] = []
    left, cut = MAX_TEXT_CHARS, len(listed) > _MOST_SHEETS
    for key, entry in {entry.get("r:id", ""): entry for entry in listed[:_MOST_SHEETS]}.items():
        one = related.get(key)
        content = contents.read(one.part) if one is not None and one.kind == "worksheet" else b""
        if not content:
            continue
        rows = _Rows(strings, dates, left)
        parse(content, rows.on_start, rows.on_end, rows.on_text)
        text = "\n".join(rows.lines)
        hidden = entry.get("state", "visible") != "visible"
        sheets.append(Sheet(name=entry.get("name", ""), text=text, hidden=hidden))
        left -= len(text)
        cut = cut or rows.cut
        if left <= 0:
            break
    return sheets, cut


class _Rows:
    """Takes the elements of a sheet."""

    def __init__(self, strings: list[str], dates: frozenset[int], most: int) -> None:
        self.lines: list[str] = []
        self.cut = False
        self._strings, self._dates, self._left = strings, dates, most
        self._cells: dict[int, str] = {}
        self._column = 0
        self._kind, self._style = "n", -1
        self._inside = ""
        self._value: list[str] = []
        self._formula: list[str] = []

    def on_start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "c":
            self._kind, self._value, self._formula = attributes.get("t", "n"), [], []
            style = attributes.get("s", "")
            self._style = int(style) if style.isascii() and style.isdigit() and len(style) < 7 else -1
            self._column = _column(attributes.get("r", "")) or self._column + 1
        elif name == "row":
            self._cells, self._column = {}, 0
        self._inside = name

    def on_text(self, text: str) -> None:
        if self._inside in ("v", "t"):
            self._value.append(text)
        elif self._inside == "f":
            self._formula.append(text)

    def on_end(self, name: str) -> None:
        self._inside = ""
        if name == "c" and self._column > _WIDEST:
            self.cut = True
        elif name == "c" and (self._value or self._formula):
            shown = self._shown("".join(self._value)) if self._value else "=" + "".join(self._formula)
            self._cells[self._column] = " ".join(shown.split())
        elif name == "row" and self._cells:
            widest = max(self._cells)
            line = "\t".join(self._cells.get(column, "") for column in range(1, widest + 1))
            self.lines.append(line)
            self._left -= len(line) + 1
            if self._left <= 0:
                self.cut = True
                raise EnoughRead

    def _shown(self, value: str) -> str:
        if self._kind == "s":
            known = value.isascii() and value.isdigit() and int(value[:9]) < len(self._strings)
            return self._strings[int(value[:9])] if known else ""
        if self._kind == "b":
            return "TRUE" if value == "1" else "FALSE"
        return _date(value) if self._kind == "n" and self._style in self._dates else value


def _shared_strings(content: bytes) -> list[str]:
    """The texts that cells refer to by number."""
    found: list[str] = []
    words: list[str] = []
    inside = phonetic = False

    def on_start(name: str, _: Mapping[str, str]) -> None:
        nonlocal inside, phonetic
        phonetic = phonetic or name == "rPh"
        inside = name == "t" and not phonetic

    def on_end(name: str) -> None:
        nonlocal inside, phonetic
        inside = False
        phonetic = phonetic and name != "rPh"
        if name == "si":
            found.append("".join(words))
            words.clear()

    def on_text(text: str) -> None:
        if inside:
            words.append(text)

    if content:
        parse(content, on_start, on_end, on_text)
    return found


def _date_styles(content: bytes) -> frozenset[int]:
    """The numbers of the cell styles that show a date or a time."""
    own: set[str] = set()
    styles: list[str] = []
    in_cells = False

    def on_start(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal in_cells
        in_cells = in_cells or name == "cellXfs"
        if name == "numFmt" and _DATE_LETTERS.search(
            _NOT_FORMAT.sub("", attributes.get("formatCode", "")[:200])
        ):
            own.add(attributes.get("numFmtId", ""))
        elif name == "xf" and in_cells:
            styles.append(attributes.get("numFmtId", ""))

    def on_end(name: str) -> None:
        nonlocal in_cells
        in_cells = in_cells and name != "cellXfs"

    if content:
        parse(content, on_start, on_end, _ignore)
    dates = own | {str(number) for number in _DATE_FORMATS}
    return frozenset(index for index, number in enumerate(styles) if number in dates)


def _date(value: str) -> str:
    """A day number as a date, with the time if there is one."""
    try:
        days = float(value)
    except ValueError:
        return value
    if not 0 <= days <= _LAST_DAY:
        return value
    moment = _FIRST_DAY + timedelta(seconds=round(days * 86_400))
    if days < 1:
        return f"{moment:%H:%M:%S}"
    return f"{moment:%Y-%m-%d}" if days == int(days) else f"{moment:%Y-%m-%d %H:%M:%S}"


def _column(place: str) -> int:
    """The number of a cell's column, from 1; 0 if its place does not name one."""
    letters = _LETTERS.match(place)
    number = 0
    for letter in letters.group() if letters else "":
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


def _ignore(_: str) -> None:
    """An end or a text of no interest."""
