"""The table of commands: what the platforms allow, and the documents that show it."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from pipeline.domain.command_types import LANGUAGES, MAX_DESCRIPTION_CHARS, CommandName
from pipeline.domain.commands import COMMAND_NAMES, COMMANDS
from tests.architecture.sources import ROOT
from tests.support.tables import each


def _rows() -> list[str]:
    rows = []
    for command in COMMANDS:
        word = f"`/{command.name}`"
        if command.argument is not None:
            word += f", `/{command.name} {command.argument.name.upper()}`"
        rows.append(f"| {word} | {command.description['en']} |")
    return rows


def test_every_command_is_in_the_table_once() -> None:
    assert get_args(CommandName) == COMMAND_NAMES


@each("command", COMMANDS)
def test_a_command_is_described_in_every_language_within_the_limits_of_the_platforms(command: object) -> None:
    (one,) = [known for known in COMMANDS if known is command]
    assert re.fullmatch(r"[a-z]{1,32}", one.name)
    for words in (one.description, *([one.argument.description] if one.argument else [])):
        assert tuple(words) == LANGUAGES
        for text in words.values():
            assert 3 <= len(text) <= MAX_DESCRIPTION_CHARS
            assert not text.endswith(".")


@pytest.mark.parametrize("name", ["README.md", "docs/guides/commands.md"])
def test_the_documents_show_the_table(name: str) -> None:
    shown = [
        line for line in (ROOT / name).read_text(encoding="utf-8").splitlines() if line.startswith("| `/")
    ]
    assert shown == _rows()
