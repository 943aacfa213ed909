"""The small-talk gate: tells greetings and acknowledgements, which hold no fact, from all else.

In doubt a message is no small talk: the price is one extraction, not a lost fact.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pipeline.memory.plain_text import has_phrase, words

MAX_CHARS: Final = 40
FILE: Final = Path(__file__).with_name("small_talk.toml")


def is_small_talk(message: str, *, asked: str = "") -> bool:
    """Whether `message` is small talk: at most 40 characters, and every word a known one.

    A message without words, such as an emoji, is none. `asked`: the bot's answer before; a "yes" after a
    question whether to remember something is none either.
    """
    message = message.strip()
    said = words(message)
    if not said or len(message) > MAX_CHARS:
        return False
    return _vocabulary().issuperset(said) and not asks_to_remember(asked)


def asks_to_remember(answer: str) -> bool:
    """Whether the bot's answer ends with a question about remembering."""
    answer = answer.strip()
    if not answer.endswith("?"):
        return False
    last = max(answer.rfind(end, 0, -1) for end in ".!?\n")
    return any(has_phrase(answer[last + 1 :], phrase) for phrase in _table()["asks_to_remember"])


@functools.cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


@functools.cache
def _vocabulary() -> frozenset[str]:
    return frozenset(word for words in _table()["vocabulary"].values() for word in words.split())
