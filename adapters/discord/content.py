"""Describe the content of a Discord message that is not text: polls, stickers and embeds. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.json_fields import mapping, mappings, text

_WORDS = 300
_LONG_WORDS = 2_000
_MOST_ANSWERS = 20
_MOST_EMBEDS = 10
_MOST_FIELDS = 25
_MOST_STICKERS = 3


def described(message: Mapping[str, Any]) -> str:
    """The content in brackets, one line each; empty for kinds without a description. Embeds
    count only where the message has no text: elsewhere they are previews of its links."""
    lines = [_poll(mapping(message.get("poll")))]
    lines += [_sticker(one) for one in mappings(message.get("sticker_items"), most=_MOST_STICKERS)]
    if not text(message.get("content"), most=1):
        lines += [_embed(one) for one in mappings(message.get("embeds"), most=_MOST_EMBEDS)]
    return "\n".join(f"[{line}]" for line in lines if line)


def unusable(message: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of content without a description or a file, each with its article."""
    return ("an invitation to an activity",) if mapping(message.get("activity")) else ()


def _poll(poll: Mapping[str, Any]) -> str:
    question = _line(mapping(poll.get("question")).get("text"))
    answers = (mapping(one.get("poll_media")) for one in mappings(poll.get("answers"), most=_MOST_ANSWERS))
    named = " / ".join(filter(None, (_line(one.get("text")) for one in answers)))
    return f"Poll: {question} {named}".rstrip() if question else ""


def _sticker(sticker: Mapping[str, Any]) -> str:
    return f"Sticker {_line(sticker.get('name'))}".rstrip()


def _embed(embed: Mapping[str, Any]) -> str:
    fields = (
        ": ".join(filter(None, (_line(one.get("name")), _line(one.get("value")))))
        for one in mappings(embed.get("fields"), most=_MOST_FIELDS)
    )
    long_words = _line(embed.get("description"), limit=_LONG_WORDS)
    parts = (_line(mapping(embed.get("author")).get("name")), _line(embed.get("title")), long_words, *fields)
    said = " | ".join(filter(None, parts))
    return f"Embed: {said}" if said else ""


def _line(value: object, *, limit: int = _WORDS) -> str:
    return " ".join(text(value, most=limit).split()).replace("[", "(").replace("]", ")")
