"""Reads a channel's markup as its clients do, independently of how we write it: what a reader sees."""

from __future__ import annotations

import html
import re
from urllib.parse import unquote

_ZERO = "\u200b"
_FENCE = re.compile(r"```(?:[A-Za-z0-9_+.#-]+(?=\n))?\n?(.*?)\n?```", re.DOTALL)
_DISCORD_TOKEN = re.compile(
    r"\\(?P<escaped>[^0-9A-Za-z\s])"
    r"|(?P<ticks>`+)(?P<code>[\s\S]*?[^`])(?P=ticks)(?!`)"
    r"|\[(?P<label>(?:\\.|[^\]\\])+)\]\(<[^>]+>\)"
    r"|<(?P<address>https?://[^ >]+)>"
    r"|(?P<mark>\*\*\*|\*\*|\*|~~)"
)
_SLACK_TOKEN = re.compile(
    r"<(?P<address>[^<>|]+)(?:\|(?P<label>[^<>]+))?>"
    r"|`(?P<code>[^`\n]+)`"
    r"|(?P<mark>(?<![^\W_])[*_~](?![\s\u200b]))"
    r"|(?P<close>(?<=[^\s])[*_~](?![^\W_]))"
)


def discord_reading(content: str) -> str:
    """The words that Discord shows."""
    return _outside_fences(content, _discord_lines).replace(_ZERO, "")


def slack_reading(text: str) -> str:
    """The words that Slack shows, without the characters that it takes for marks: see `without_marks`."""
    return html.unescape(_outside_fences(text, _slack_lines)).replace(_ZERO, "")


def without_marks(text: str) -> str:
    """For comparing with Slack, where a literal mark and a mark cannot be distinguished by reading."""
    return re.sub(r"[*_~`¦|]", "", text)


def squeezed(text: str) -> str:
    """Without whitespace, what is before quoted lines and items, and the forms of one address."""
    lines = [re.sub(r"^(?:> )?\s*(?:[-•](?: |$))*", "", line) for line in text.split("\n")]
    return unquote(re.sub(r"[\s>•/]|\u200b", "", "".join(lines)))


def _outside_fences(text: str, read: object) -> str:
    assert callable(read)
    pieces: list[str] = []
    done = 0
    for match in _FENCE.finditer(text):
        pieces.extend((read(text[done : match.start()]), match.group(1)))
        done = match.end()
    return "".join((*pieces, read(text[done:])))


def _discord_lines(text: str) -> str:
    lines = [re.sub(r"^((?:> )?\s*(?:- |\d+\. )?)#{1,3} ", r"\1", line) for line in text.split("\n")]
    return "\n".join(_DISCORD_TOKEN.sub(_discord_token, line) for line in lines)


def _discord_token(match: re.Match[str]) -> str:
    if match["escaped"]:
        return match["escaped"]
    if match["code"] is not None:
        code = match["code"]
        return code[1:-1] if len(match["ticks"]) > 1 and code.startswith(" ") and code.endswith(" ") else code
    if match["label"]:
        return re.sub(r"\\([^0-9A-Za-z\s])", r"\1", match["label"])
    return match["address"] or ""


def _slack_lines(text: str) -> str:
    return _SLACK_TOKEN.sub(lambda match: match["label"] or match["address"] or match["code"] or "", text)
