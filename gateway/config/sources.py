"""Read values from the TOML file, the environment overlay and the command line, in that order.

Each layer overwrites the one before, setting by setting. Not here: validating a value (`load`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from gateway.config.catalog import SECTIONS, SETTINGS, dotted, remedy_for_unknown
from gateway.config.problems import Problem, Source
from pipeline.domain.frozen import dataclass

PREFIX = "PARLOUR__"
OPTION = "--set"

_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_NAME = re.compile(r"[A-Za-z_]+")
_TEXT_KINDS = frozenset({"text", "choice", "path", "secret"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenValue:
    """An unchecked value for one setting, and its source."""

    value: Any
    source: Source


@dataclass(slots=True, kw_only=True)
class Layers:
    """The values given so far: the effective value of each setting, and problems such as unknown keys."""

    values: dict[str, GivenValue] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def add_file(self, path: Path) -> None:
        """Read the TOML file at `path`; its errors become problems."""
        text = ""
        try:
            text = path.read_bytes().decode("utf-8")
            table = tomllib.loads(text)
        except OSError as error:
            reason = error.strerror or "input/output error"
            self._file_problem(path, f"cannot be read ({reason})", "name a file that this user can read")
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            self._file_problem(path, f"is not UTF-8 text at line {line}", "save the file as UTF-8")
        except RecursionError:
            self._file_problem(path, "is nested too deeply", "remove the nested brackets")
        except tomllib.TOMLDecodeError as error:
            self._file_problem(path, _syntax_words(str(error), text), "correct the line there")
        except ValueError:
            # The parser passes on Python's refusal to convert thousands of digits.
            self._file_problem(path, "holds a number with too many digits", "shorten the number")
        else:
            self.place((), table, Source(kind="file", name=str(path)))

    def add_environment(self, environ: Mapping[str, str]) -> None:
        """Overlay every variable PARLOUR__SECTION__KEY of `environ`."""
        for name in sorted(environ):
            if name.startswith(PREFIX):
                path = tuple(name.removeprefix(PREFIX).lower().split("__"))
                source = Source(kind="environment", name=name)
                self.place(path, _parse_value(dotted(path), environ[name]), source)

    def add_overrides(self, overrides: Sequence[str]) -> None:
        """Overlay `section.key=value` texts; the last one for a setting wins."""
        for number, override in enumerate(overrides, start=1):
            name, equals, text = override.partition("=")
            path = tuple(name.strip().split("."))
            if equals and all(_NAME.fullmatch(part) for part in path):
                self.place(path, _parse_value(dotted(path), text), Source(kind="command line", name=OPTION))
            else:
                # The text is not repeated: it may be a secret without its setting's name.
                self.problems.append(
                    Problem(
                        path=OPTION,
                        what=f"override number {number} does not have the form section.key=value",
                        fix=f"write for example {OPTION} server.port=8765",
                    )
                )

    def place(self, path: tuple[str, ...], value: Any, source: Source) -> None:
        """Store `value` at `path`; a table of a known section is split into its settings."""
        name = dotted(path)
        if name in SETTINGS:
            self.values[name] = GivenValue(value=value, source=source)
        elif name not in SECTIONS:
            what = f"names no setting ({source.phrase()})"
            self.problems.append(Problem(path=name, what=what, fix=remedy_for_unknown(path)))
        elif isinstance(value, dict):
            for key, item in value.items():
                self.place((*path, key), item, source)
        else:
            what = f"is a section, but a single value was given ({source.phrase()})"
            self.problems.append(Problem(path=name, what=what, fix=f"write the table [{name}]"))

    def nested(self, without: frozenset[str] = frozenset()) -> dict[str, Any]:
        """The values as nested tables, without the settings in `without`."""
        root: dict[str, Any] = {}
        for name, given in self.values.items():
            if name in without:
                continue
            *sections, key = name.split(".")
            table = root
            for section in sections:
                table = table.setdefault(section, {})
            table[key] = given.value
        return root

    def source_of(self, name: str) -> Source:
        """The source of the effective value of the setting `name`."""
        return self.values[name].source if name in self.values else Source(kind="default")

    def _file_problem(self, path: Path, what: str, fix: str) -> None:
        self.problems.append(Problem(path=str(path), what=what, fix=fix))


def _parse_value(name: str, text: str) -> Any:
    """`text` as a TOML value, else unchanged.

    A text setting takes `text` unchanged unless it is a quoted TOML string, so that a name like 1984 needs
    no quotes inside quotes.
    """
    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    if document.keys() != {"value"}:
        return text
    value = document["value"]
    holds_text = name in SETTINGS and SETTINGS[name].kind in _TEXT_KINDS
    return text if holds_text and not isinstance(value, str) else value


def _syntax_words(message: str, text: str) -> str:
    position = _POSITION.search(message)
    if position is None:
        return f"is not valid TOML: {message}"
    reason = message[: position.start()]
    line, column = position.groups()
    if line is None:
        lines = text.split("\n")
        line, column = len(lines), len(lines[-1]) + 1
    return f"is not valid TOML at line {line}, column {column}: {reason}"
