"""The values in the table of session commands: names, arguments and texts in every language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pipeline.domain.frozen import dataclass

CommandName = Literal[
    "stop",
    "new",
    "end",
    "undo",
    "retry",
    "otr",
    "voice",
    "model",
    "agent",
    "run",
    "runs",
    "history",
    "export",
    "usage",
    "status",
    "allowed",
    "schedules",
    "memory",
    "heartbeat",
    "link",
    "unlink",
    "help",
]
Language = Literal["en", "de", "fr", "es"]
LANGUAGES: Final[tuple[Language, ...]] = ("en", "de", "fr", "es")
MAX_DESCRIPTION_CHARS: Final = 100
"""The shortest limit of the platforms: Discord's."""

Words = Mapping[Language, str]
"""The same words in every language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """The word that a command takes behind it."""

    name: str
    description: Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command."""

    name: CommandName
    description: Words
    """What it does, as an imperative without a full stop."""
    argument: Argument | None = None
    private: bool = False
    """It works only in a chat between one person and the bot."""
