"""The crisis response: fixed words in the person's language where it is known, with numbers by country."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

from pipeline.safety.assessment import IMMINENT
from pipeline.safety.resources import Country, ResourceBook

FILE = Path(__file__).with_name("replies.toml")
FALLBACK: Final = "en"
Follows = Literal["", "again", "accepted"]
"""What the message is to a response of a moment ago: there was none or it says something new; it says
nothing new; it thanks, or says that the person will call."""

STATIC_REPLY: Final = (
    "I could not check your message, so I answer with care. If you are in danger, or think about hurting "
    "yourself: please call the emergency services now (112 in Europe, 911 in North America), move away from "
    "anything that you could hurt yourself with, and go to a person whom you trust. "
    "https://findahelpline.com lists people who listen, by country. If all is well, please send your message "
    "again."
)
"""The reply if nothing else can be made."""


@functools.cache
def _texts() -> Mapping[str, Mapping[str, str]]:
    found: Mapping[str, Mapping[str, str]] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return found


def languages() -> tuple[str, ...]:
    """The languages that there are words in."""
    return tuple(_texts())


def known_language(*candidates: str) -> str:
    """The first of the language tags that there are words in; English if there is none."""
    for tag in candidates:
        code = tag.partition("-")[0].lower()
        if code in _texts():
            return code
    return FALLBACK


def crisis_reply(
    level: int, *, language: str, country: Country | None, resources: ResourceBook, follows: Follows = ""
) -> str:
    """The crisis response. `country`: where the person is; None if that is unknown."""
    return "\n\n".join(_parts(level, _texts()[language], language, country, resources, follows))


def _parts(
    level: int,
    texts: Mapping[str, str],
    language: str,
    country: Country | None,
    resources: ResourceBook,
    follows: Follows,
) -> Iterator[str]:
    yield texts[follows or "thanks"]
    emergency = "now" if level == IMMINENT else "if_worse"
    if level == IMMINENT or follows != "accepted":
        anywhere = texts[f"{emergency}_anywhere"]
        yield anywhere if country is None else texts[emergency].format(number=country.emergency)
    if level == IMMINENT:
        yield texts["away"]
    if not follows:
        yield texts["person"]
    shown = (country,) if country is not None else resources.speaking(language)
    lines = [f"- {_line(one, alone=country is not None)}" for one in shown]
    if country is None and resources.everywhere:
        lines.append(f"- {texts['elsewhere'].format(url=resources.everywhere)}")
    if lines:
        yield "\n".join((texts["lines"], *lines))
    if country is None and follows != "accepted":
        yield texts["country"]
    yield texts["safe"]


def _line(country: Country, *, alone: bool) -> str:
    numbers = "; ".join(country.lines)
    return numbers if alone else f"{country.name}: {numbers}"
