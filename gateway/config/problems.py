"""The problems of a configuration, as data and as one line for the operator.

Not here: finding the problems (`load`, `file_checks`) and printing the settings (`explain`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pipeline.domain.errors import ConfigurationError
from pipeline.domain.frozen import dataclass

SourceKind = Literal["default", "file", "environment", "command line"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingSource:
    """The source of a setting's value."""

    kind: SourceKind
    name: str = ""
    """The file, the environment variable or the option; empty for a default."""
    line: int = 0
    """The line of the file, from 1; 0 if it is unknown."""

    def label(self) -> str:
        """Text for a column: `default`, `file parlour.toml`, `environment PARLOUR__BOT__NAME`."""
        return f"{self.kind} {self.name}".rstrip()

    def phrase(self) -> str:
        """Text for a sentence: `in parlour.toml, line 3`, `in the option --set`."""
        match self.kind:
            case "file":
                return f"in {self.name}, line {self.line}" if self.line else f"in {self.name}"
            case "environment":
                return f"in the environment variable {self.name}"
            case "command line":
                return f"in the option {self.name}"
            case "default":
                return "by default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing to change. `str(problem)` is one line: `dotted.path: what is wrong; what to do`."""

    path: str
    """The setting's dotted path, or the name of the file, variable or option that is wrong."""
    what: str
    fix: str

    def __str__(self) -> str:
        return one_line(f"{self.path}: {self.what}; {self.fix}")


class ConfigurationProblems(ConfigurationError):
    """All problems of a configuration; `str(error)` has one line for each."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def one_line(text: str) -> str:
    """`text` with every character escaped that would break the line or control a terminal."""
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
