"""Where people in a crisis find help, by country: the shipped file and the operator's own."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.domain.errors import ConfigurationError
from pipeline.domain.frozen import dataclass
from pipeline.safety.plain_words import plain_words

FILE = Path(__file__).with_name("resources.toml")
_TEXTS = ("code", "name", "emergency")
_LISTS = ("names", "languages", "lines")
_KEYS = frozenset((*_TEXTS, *_LISTS, "source"))
_TOP = frozenset(("as_of", "everywhere", "country"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Country:
    """The numbers of one country."""

    code: str
    name: str
    names: tuple[str, ...] = ()
    """How people write it, in plain words."""
    languages: tuple[str, ...] = ()
    """It is shown to people who write in one of them and have named no country."""
    emergency: str
    lines: tuple[str, ...]
    source: str = ""
    """The addresses of those who answer there, to compare the lines with."""


class ResourceBook:
    """All countries. Does not change while the gateway runs."""

    def __init__(self, countries: Sequence[Country], *, as_of: str, everywhere: str) -> None:
        self._by_code: Mapping[str, Country] = {one.code: one for one in countries}
        self.as_of = as_of
        """The date of the entries, as the file has it."""
        self.everywhere = everywhere
        """An address for all other countries."""
        self._names = [
            (re.compile(rf"(?<!\w){re.escape(name)}(?!\w)"), one) for one in countries for name in one.names
        ]

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the countries."""
        return tuple(self._by_code)

    def of(self, code: str) -> Country | None:
        """The country with that code; None if there is none."""
        return self._by_code.get(code.upper())

    def named_in(self, text: str) -> Country | None:
        """The country that `text` names; None if it names none."""
        plain = plain_words(text)
        return next((one for pattern, one in self._names if pattern.search(plain)), None)

    def speaking(self, language: str) -> tuple[Country, ...]:
        """The countries that are shown to people who write in `language`."""
        return tuple(one for one in self._by_code.values() if language in one.languages)

    def with_own(self, own: ResourceBook) -> ResourceBook:
        """This book with the countries of `own` first, which replace those with the same code."""
        countries = (*own._by_code.values(), *(one for one in self._by_code.values() if not own.of(one.code)))
        return ResourceBook(countries, as_of=own.as_of, everywhere=own.everywhere or self.everywhere)


@functools.cache
def shipped_resources() -> ResourceBook:
    """The countries of the file that comes with the program."""
    return read_resources(FILE)


def read_resources(file: Path) -> ResourceBook:
    """The countries of a file. Raises ConfigurationError, which names the file, the entry and the key."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: is no TOML: {error}") from error
    if unknown := sorted(table.keys() - _TOP):
        raise ConfigurationError(f"{file}: {unknown[0]}: is unknown; there are {', '.join(sorted(_TOP))}")
    as_of, everywhere = table.get("as_of"), table.get("everywhere", "")
    if not isinstance(as_of, str) or not isinstance(everywhere, str):
        raise ConfigurationError(f'{file}: as_of: write the date of the entries, as in as_of = "2026-11-27"')
    rows = table.get("country")
    if not isinstance(rows, list) or not rows:
        raise ConfigurationError(f"{file}: country: name at least one [[country]]")
    countries = [_country(file, number, row) for number, row in enumerate(rows, start=1)]
    return ResourceBook(countries, as_of=as_of, everywhere=everywhere)


def _country(file: Path, number: int, row: Any) -> Country:
    where = f"{file}: country {number}"
    if not isinstance(row, dict):
        raise ConfigurationError(f"{where}: must be a table [[country]]")
    if unknown := sorted(row.keys() - _KEYS):
        raise ConfigurationError(f"{where}: {unknown[0]}: is unknown; there are {', '.join(sorted(_KEYS))}")
    for key in _TEXTS:
        if not isinstance(row.get(key), str) or not row[key].strip():
            raise ConfigurationError(f"{where}: {key}: must be a text")
    for key in _LISTS:
        value = row.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise ConfigurationError(f"{where}: {key}: must be a list of texts")
    if not isinstance(row.get("source", ""), str):
        raise ConfigurationError(f"{where}: source: must be a text")
    if not row.get("lines"):
        raise ConfigurationError(f"{where}: lines: name at least one line of help")
    return Country(
        code=row["code"].upper(),
        name=row["name"],
        names=tuple(plain_words(name) for name in row.get("names", ())),
        languages=tuple(row.get("languages", ())),
        emergency=row["emergency"],
        lines=tuple(row["lines"]),
        source=row.get("source", ""),
    )
