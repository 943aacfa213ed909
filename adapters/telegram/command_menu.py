"""The bot's command menu for `setMyCommands`, from the table of all commands."""

from __future__ import annotations

from typing import Any

from pipeline.domain.command_types import Language
from pipeline.domain.commands import COMMANDS


def command_menu(language: Language) -> dict[str, Any]:
    """The parameters that set the menu for the users of a language. The English one is for all others too."""
    commands = [{"command": one.name, "description": one.description[language]} for one in COMMANDS]
    menu: dict[str, Any] = {"commands": commands}
    return menu if language == "en" else {**menu, "language_code": language}
