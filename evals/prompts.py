"""The prompts of the eval `embedded`: the user's message, and what the bot should do."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One message."""

    id: str
    language: str
    words: str
    tool: str | None
    """The tool that should run; None for none."""
    arguments: dict[str, str] = field(default_factory=dict)
    """Words that its arguments should have; `due` is a local time, to the minute."""
    off_the_record: bool = False


def prompts(which: str = "all") -> list[Prompt]:
    """The prompts of `tuning`, of `held_out` (not looked at while the rules were written), or of both."""
    names = ("tuning", "held_out") if which == "all" else (which,)
    found: list[Prompt] = []
    for name in names:
        entries: list[dict[str, Any]] = json.loads((FOLDER / f"embedded_{name}.json").read_text("utf-8"))
        found += [Prompt(**entry) for entry in entries]
    return found
