"""What platforms refuse, and what must never reach a reader, as pure checks. The fake platforms use them.

Each returns problems in words, empty for a message that may be sent. Lengths are UTF-16 units, which are
never fewer than the characters a platform counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

TELEGRAM_TYPES = frozenset({"bold", "italic", "strikethrough", "code", "pre", "text_link", "blockquote"})
_ALONE = ("code", "pre")
_NOT_SEEN = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp", "Mn", "Me"})

_SLACK_LINK = re.compile(r"<(?:https?://|mailto:)[^<>|\s]+(?:\|[^<>|\n]+)?>")
_SLACK_QUOTE = re.compile(r"^>(?= |$)", re.MULTILINE)
_SLACK_AMPERSAND = re.compile(r"&(?!amp;|lt;|gt;)")

_FENCED = re.compile(r"```.*?```", re.DOTALL)
_INLINE_CODE = re.compile(r"(?<![\\`])(`+)(?!`)(?:(?!\1).)+?(?<!`)\1(?!`)")
_MENTION = re.compile(r"@(?:everyone|here)|(?<!\\)<(?:@[!&]?|#)\d+>|(?<!\\)<(?:a?:\w+:|t:-?|/[\w ]+:|id:)\w+")
_MASKED = re.compile(r"(?<!\\)\[((?:\\.|[^\]\\])*)\]\((<?)([^)>]*)>?\)")


def size(text: str) -> int:
    """UTF-16 units."""
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2


def is_blank(text: str) -> bool:
    """Whether a reader sees nothing."""
    return all(unicodedata.category(char) in _NOT_SEEN for char in text)


def telegram_problems(text: str, entities: Sequence[Mapping[str, Any]], *, limit: int = 4096) -> list[str]:
    """Of a text with entities as `sendMessage` takes them."""
    problems: list[str] = []
    if is_blank(text):
        problems.append("the text is empty")
    if size(text) > limit:
        problems.append(f"the text is {size(text)} UTF-16 units long, more than {limit}")
    if _has_surrogate(text):
        return [*problems, "the text is not valid Unicode"]
    if len(entities) > 100:
        problems.append(f"{len(entities)} entities, more than 100")
    for entity in entities:
        problems.extend(_entity_problems(text, entity))
    return problems or _nesting_problems(entities)


def slack_problems(blocks_text: Sequence[str]) -> list[str]:
    """Of the mrkdwn texts of one message's section blocks."""
    problems: list[str] = []
    if not blocks_text:
        problems.append("no blocks")
    if len(blocks_text) > 50:
        problems.append(f"{len(blocks_text)} blocks, more than 50")
    total = sum(size(text) for text in blocks_text)
    if total > 12_000:
        problems.append(f"{total} characters over all blocks, more than 12,000")
    for number, text in enumerate(blocks_text):
        problems.extend(f"block {number}: {problem}" for problem in _section_problems(text))
    return problems


def slack_text_problems(text: str) -> list[str]:
    """Of the field `text`: what Slack would read as a command."""
    bare = _SLACK_QUOTE.sub("", _SLACK_LINK.sub("", text))
    problems = [f"unescaped {sign}" for sign in "<>" if sign in bare]
    if _SLACK_AMPERSAND.search(bare):
        problems.append("unescaped &")
    if _has_surrogate(text):
        problems.append("not valid Unicode")
    return problems


def discord_problems(content: str, *, limit: int = 2000) -> list[str]:
    """Of the content of one message."""
    problems: list[str] = []
    if is_blank(content):
        problems.append("the content is empty")
    if size(content) > limit:
        problems.append(f"{size(content)} characters, more than {limit}")
    if _has_surrogate(content):
        problems.append("not valid Unicode")
    if content.count("```") % 2:
        problems.append("a code fence is not closed")
    bare = _INLINE_CODE.sub("", _FENCED.sub("", content))
    problems.extend(f"mentions: {match.group()}" for match in _MENTION.finditer(bare))
    for match in _MASKED.finditer(bare):
        if match.group(2) != "<":
            problems.append(f"a link that may be embedded: {match.group(3)}")
        if "://" in match.group(1).replace("\\", ""):
            problems.append(f"Discord does not link words that look like an address: {match.group(1)}")
    return problems


def _section_problems(text: str) -> list[str]:
    problems = slack_text_problems(text)
    if is_blank(text):
        problems.append("empty")
    if size(text) > 3000:
        problems.append(f"{size(text)} characters, more than 3000")
    if text.count("```") % 2:
        problems.append("a code fence is not closed")
    return problems


def _entity_problems(text: str, entity: Mapping[str, Any]) -> list[str]:
    kind, offset, length = entity.get("type"), entity.get("offset"), entity.get("length")
    if kind not in TELEGRAM_TYPES:
        return [f"unknown entity {kind!r}"]
    if not isinstance(offset, int) or not isinstance(length, int) or offset < 0 or length <= 0:
        return [f"{kind}: offset {offset!r}, length {length!r}"]
    units = text.encode("utf-16-le")
    if (offset + length) * 2 > len(units):
        return [f"{kind}: ends at {offset + length}, behind the text"]
    problems = [
        f"{kind}: {edge} is inside a surrogate pair"
        for edge in (offset, offset + length)
        if _in_pair(units, edge)
    ]
    if not problems and not units[offset * 2 : (offset + length) * 2].decode("utf-16-le").strip():
        problems.append(f"{kind} at {offset} holds only whitespace")
    allowed = {"type", "offset", "length", *{"text_link": ("url",), "pre": ("language",)}.get(str(kind), ())}
    problems.extend(f"{kind}: unknown field {name}" for name in sorted(set(entity) - allowed))
    if kind == "text_link" and not re.match(r"(?:https?|tg)://[^\s/]+", str(entity.get("url", ""))):
        problems.append(f"text_link: the address {entity.get('url')!r} is not one")
    return problems


def _in_pair(units: bytes, offset: int) -> bool:
    return offset * 2 < len(units) and 0xDC <= units[offset * 2 + 1] <= 0xDF


def _nesting_problems(entities: Sequence[Mapping[str, Any]]) -> list[str]:
    problems: list[str] = []
    around: list[Mapping[str, Any]] = []
    for entity in sorted(entities, key=_outermost_first):
        start, kind = entity["offset"], entity["type"]
        end = start + entity["length"]
        while around and around[-1]["offset"] + around[-1]["length"] <= start:
            around.pop()
        for outer in around:
            if outer["offset"] + outer["length"] < end:
                problems.append(f"{kind} at {start} and {outer['type']} at {outer['offset']} overlap")
            elif outer["type"] == kind:
                problems.append(f"{kind} at {start} is inside another one")
            elif outer["type"] in _ALONE or (kind in _ALONE and outer["type"] != "blockquote"):
                problems.append(f"{kind} at {start} may not be inside {outer['type']}")
            elif kind == "blockquote":
                problems.append(f"blockquote at {start} is inside {outer['type']}")
        around.append(entity)
    return problems


def _outermost_first(entity: Mapping[str, Any]) -> tuple[int, int, bool]:
    return entity["offset"], -entity["length"], entity["type"] != "blockquote"


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)
