"""Slack's markup in messages of people, read as words: mentions, channels, links and escapes."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"<([^<>]{1,4000})>")
_EVERYBODY = {"here": "@here", "channel": "@channel", "everyone": "@everyone"}


def plain_words(text: str, bot_user: str) -> tuple[str, bool]:
    """The words as a reader sees them, without the mentions of the bot; whether it is mentioned."""
    mentioned = spoken = False
    pieces: list[str] = []
    end = 0
    for found in _TOKEN.finditer(text):
        pieces.append(text[end : found.start()])
        spoken = spoken or bool(pieces[-1].strip())
        end = found.end()
        target, _, label = found[1].partition("|")
        if target == f"@{bot_user}":
            mentioned = True
            end = _after_mention(text, end, first=not spoken)
        else:
            pieces.append(_token(target, label))
            spoken = True
    pieces.append(text[end:])
    return _unescaped("".join(pieces)).strip(), mentioned


def escaped(text: str) -> str:
    """Text for a field that Slack reads as mrkdwn: no link, no mention, nobody called."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _after_mention(text: str, end: int, *, first: bool) -> int:
    """Where the words go on: `@bot: hello` is `hello`."""
    while first and end < len(text) and text[end] in ":, ":
        end += 1
    while end < len(text) and text[end] == " ":
        end += 1
    return end


def _token(target: str, label: str) -> str:
    if target.startswith("@"):
        return f"@{label or target[1:]}"
    if target.startswith("#"):
        return f"#{label or target[1:]}"
    if target.startswith("!"):
        return label or _EVERYBODY.get(target[1:], target[1:])
    address = target.removeprefix("mailto:")
    if not label or label in (target, address):
        return address
    return f"{label} ({address})"


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
