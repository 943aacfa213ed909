"""The value in a clause: where it ends, and whether it is one at all."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_MAX_WORDS: Final = 12
_FILE: Final = Path(__file__).with_name("values_of_clauses.toml")
_CAPITAL: Final = r"[^\W\d_a-zà-öø-ÿ][\w'\u2019-]*"
_NAME: Final = re.compile(rf"{_CAPITAL}(?:\s(?:(?:de|da|del|van|von|der|la|le|di|al)\s)?{_CAPITAL}){{0,3}}")
_LOWER_NAME: Final = re.compile(r"[^\W\d_][\w'\u2019-]*(?:\s[^\W\d_][\w'\u2019-]*)?")


def value_of(text: str, kind: str, *, until: str = "", message: str = "") -> str:
    """The value at the beginning of `text`; empty if it is none of that kind. Names may be in lower case
    where the whole `message` is."""
    if kind in {"name", "place", "proper"}:
        return _name(text.strip(), lower=kind != "proper" and message == message.lower())
    cut = _patterns()["end"].search(text)
    value = text[: cut.start()] if cut is not None else text
    if until and (stop := re.search(rf"\s(?:{until})(?=\s|$)", value, re.IGNORECASE)) is not None:
        value = value[: stop.start()]
    before = ""
    while before != value:
        before, value = value, _patterns()["time"].sub("", value.strip(" '\"*_"))
    if not value or len(value.split()) > _MAX_WORDS or not any(char.isalpha() for char in value):
        return ""
    return "" if kind == "thing" and _patterns()["points"].match(value) is not None else value


def _name(text: str, *, lower: bool) -> str:
    pattern = _LOWER_NAME if lower else _NAME
    found = pattern.match(text)
    if found is None or _patterns()["article"].match(text) is not None:
        return ""
    value = found[0]
    if lower:
        # Without capitals only the end of the clause says where a name ends.
        first = value.split()[0]
        value = first if _patterns()["after_name"].match(text[len(first) :]) else value
    return value if _patterns()["after_name"].match(text[len(value) :]) is not None else ""


@functools.cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    """Each pattern is broken into lines in the file."""
    table = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {name: re.compile(text.replace("\n", ""), re.IGNORECASE) for name, text in table.items()}
