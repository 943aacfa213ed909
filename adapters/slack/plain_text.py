"""Convert Slack's markup in people's messages to plain text: mentions, channels, links and escapes."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"<([^<>]{1,4000})>")
_EVERYBODY = {"here": "@here", "channel": "@channel", "everyone": "@everyone"}


def plain_words(text: str, bot_user: str) -> tuple[str, bool]:
    """The text as a reader sees it, without the mentions of the bot; whether it is mentioned."""
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
    """Escape text for a mrkdwn field, so that it has no links and no mentions."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _after_mention(text: str, end: int, *, first: bool) -> int:
    """Where the text continues after a mention: `@bot: hello` is `hello`."""
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
