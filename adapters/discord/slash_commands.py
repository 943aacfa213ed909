"""The bot's slash commands for Discord, from the table of all commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pipeline.domain.command_types import Argument, Command, Language, Words
from pipeline.domain.commands import COMMANDS

_CHAT_INPUT, _STRING = 1, 3
_SERVERS, _DIRECT_CHATS = 0, 1
_LOCALES: Final[Mapping[str, Language]] = {"de": "de", "fr": "fr", "es-ES": "es", "es-419": "es"}
"""Discord's name of each language other than English."""


def _localised(words: Words) -> dict[str, Any]:
    others = {locale: words[language] for locale, language in _LOCALES.items()}
    return {"description": words["en"], "description_localizations": others}


def _option(argument: Argument) -> dict[str, Any]:
    return {"type": _STRING, "name": argument.name, "required": False, **_localised(argument.description)}


def _slash_command(command: Command) -> dict[str, Any]:
    options = {} if command.argument is None else {"options": [_option(command.argument)]}
    return {
        "type": _CHAT_INPUT,
        "name": command.name,
        # In servers that invited the bot, and in its direct chats.
        "contexts": [_DIRECT_CHATS] if command.private else [_SERVERS, _DIRECT_CHATS],
        "integration_types": [0],
        **_localised(command.description),
        **options,
    }


SLASH_COMMANDS: Final[tuple[Mapping[str, Any], ...]] = tuple(map(_slash_command, COMMANDS))
