"""The value in a clause: where it ends, and whether it is one at all."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pipeline.domain.frozen import dataclass

_MAX_WORDS: Final = 12
_FILE: Final = Path(__file__).with_name("values_of_clauses.toml")
_CAPITAL: Final = r"[^\W\d_a-zà-öø-ÿ][\w'\u2019-]*"
_NAME: Final = re.compile(rf"{_CAPITAL}(?:\s(?:(?:de|da|del|van|von|der|la|le|di|al)\s)?{_CAPITAL}){{0,3}}")
_LOWER_NAME: Final = re.compile(r"[^\W\d_][\w'\u2019-]*(?:\s[^\W\d_][\w'\u2019-]*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Where a value ends besides the usual places."""

    until: str = ""
    """A pattern of words before which it ends."""
    any_word: bool = False
    """Any word may follow a name."""


def value_of(text: str, kind: str, ending: Ending | None = None, *, message: str = "") -> str:
    """The value at the beginning of `text`; empty if it is none of that kind. Names may be in lower case
    where the whole `message` is."""
    ending = ending or Ending()
    if kind in {"name", "place", "proper"}:
        lower = kind != "proper" and message == message.lower()
        return _name(text.strip(), lower=lower, any_word=ending.any_word)
    cut = _patterns()["end"].search(text)
    value = text[: cut.start()] if cut is not None else text
    if (
        ending.until
        and (stop := re.search(rf"\s(?:{ending.until})(?=\s|$)", value, re.IGNORECASE)) is not None
    ):
        value = value[: stop.start()]
    before = ""
    while before != value:
        before, value = value, _patterns()["time"].sub("", value.strip(" '\"*_"))
    if not value or len(value.split()) > _MAX_WORDS or not any(char.isalpha() for char in value):
        return ""
    return "" if kind == "thing" and _patterns()["points"].match(value) is not None else value


def _name(text: str, *, lower: bool, any_word: bool) -> str:
    found = (_LOWER_NAME if lower else _NAME).match(text)
    if found is None or _patterns()["article"].match(text) is not None:
        return ""
    value = found[0]
    if lower:
        # Without capitals only the end of the clause says where a name ends.
        first = value.split()[0]
        value = first if _patterns()["after_name"].match(text[len(first) :]) else value
    ends = any_word or _patterns()["after_name"].match(text[len(value) :]) is not None
    return value if ends else ""


@functools.cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    """Each pattern is broken into lines in the file."""
    table = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {name: re.compile(text.replace("\n", ""), re.IGNORECASE) for name, text in table.items()}
