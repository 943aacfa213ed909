"""Describe the content of a Telegram message that is not text: places, contacts, polls and the like. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from adapters.json_fields import amount, integer, items, mapping, text

_WORDS = 300
_MOST_LINES = 30
_UNUSABLE: Mapping[str, str] = {
    "story": "a story",
    "game": "a game",
    "invoice": "an invoice",
    "paid_media": "paid media",
    "giveaway": "a giveaway",
    "giveaway_winners": "the winners of a giveaway",
    "rich_message": "a message in Telegram's rich format",
}
"""Kinds whose content a bot does not get, by the field that contains them."""


def described(message: Mapping[str, Any]) -> str:
    """The content in one line in brackets; empty for kinds without a description."""
    for field, describe in _DESCRIBED:
        content = mapping(message[field]) if field in message else None
        if content and (words := describe(content)):
            return f"[{words}]"
    return ""


def unusable(message: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of content without a description or a file, each with its article."""
    return tuple(words for field, words in _UNUSABLE.items() if field in message and mapping(message[field]))


def moves(message: Mapping[str, Any]) -> bool:
    """Whether it shares a live location, which is sent again as an edit whenever it changes."""
    return bool(mapping(message.get("location")))


def _venue(venue: Mapping[str, Any]) -> str:
    named = [_line(venue.get(key)) for key in ("title", "address")]
    place = _coordinates(mapping(venue.get("location")))
    return f"Venue: {', '.join(part for part in (*named, place) if part)}"


def _location(location: Mapping[str, Any]) -> str:
    place = _coordinates(location)
    if not place:
        return ""
    named = "Live location, at first" if integer(location.get("live_period")) else "Location"
    return f"{named}: {place}"


def _coordinates(location: Mapping[str, Any]) -> str:
    found = [_degrees(location.get(key)) for key in ("latitude", "longitude")]
    return f"latitude {found[0]}, longitude {found[1]}" if all(found) else ""


def _degrees(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    size = amount(abs(value))
    return f"{value:.6g}" if size is not None and size <= 180 else ""


def _contact(contact: Mapping[str, Any]) -> str:
    name = " ".join(filter(None, (_line(contact.get(key)) for key in ("first_name", "last_name"))))
    return f"Contact: {', '.join(part for part in (name, _line(contact.get('phone_number'))) if part)}"


def _poll(poll: Mapping[str, Any]) -> str:
    options = (mapping(one) for one in items(poll.get("options"), most=_MOST_LINES))
    named = " / ".join(filter(None, (_line(one.get("text")) for one in options)))
    question = _line(poll.get("question"))
    return f"Poll: {question} {named}".rstrip() if question else ""


def _dice(dice: Mapping[str, Any]) -> str:
    value = integer(dice.get("value"))
    return "" if value is None else f"Dice {_line(dice.get('emoji'))}: {value}".replace(" :", ":")


def _checklist(checklist: Mapping[str, Any]) -> str:
    tasks = []
    for one in items(checklist.get("tasks"), most=_MOST_LINES):
        task = mapping(one)
        done = any(key in task for key in ("completed_by_user", "completed_by_chat", "completion_date"))
        tasks.append(f"{'done' if done else 'open'}: {_line(task.get('text'))}")
    return f"Checklist {_line(checklist.get('title'))}: {'; '.join(tasks)}".replace(" :", ":")


def _sticker(sticker: Mapping[str, Any]) -> str:
    return f"Sticker {_line(sticker.get('emoji'))}".rstrip()


def _line(value: object) -> str:
    words = " ".join(text(value, most=_WORDS).split())
    return words.replace("[", "(").replace("]", ")")


_DESCRIBED: tuple[tuple[str, Callable[[Mapping[str, Any]], str]], ...] = (
    ("venue", _venue),  # before the location that it also carries
    ("location", _location),
    ("contact", _contact),
    ("poll", _poll),
    ("dice", _dice),
    ("checklist", _checklist),
    ("sticker", _sticker),
)
