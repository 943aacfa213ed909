"""Render content as Discord's message bodies. Pure; does not send.

Every body has all fields of a message, so that an edit leaves no old content: no link previews, no mentions,
and no buttons that are not requested.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adapters.channel import Outgoing, Part
from adapters.discord.question_buttons import button_ids, question_rows, stop_row
from adapters.files import OutgoingFile
from adapters.formatting.discord import DiscordText, discord_parts
from adapters.formatting.overflow import FILE_NAME, MAX_PARTS, as_file
from adapters.json_fields import mappings

TEXT_CHARS = 2000
EPHEMERAL = 1 << 6
_SUPPRESS_EMBEDS = 1 << 2
FILE_BYTES = 10_000_000
"""The largest file in a server without boosts, and in direct chats."""
_UNNAMED = re.compile(r"[^A-Za-z0-9._-]+")
"""What Discord would replace in a file's name itself: the post would not be found."""
_MARK_DIGITS = 8
_ABOUT_CHARS = 1000
_NONCE_DIGITS = 25
NO_MENTIONS: Mapping[str, Any] = {"parse": [], "replied_user": False}


def render(outgoing: Outgoing) -> tuple[Part, ...]:
    """The messages for `outgoing`, at least one; too many become the first one and a file with the whole
    text."""
    texts = discord_parts(outgoing.text, transcript=outgoing.heard, limit=TEXT_CHARS)
    rows = [stop_row()] if outgoing.unfinished else question_rows(outgoing.questions)
    if len(texts) > MAX_PARTS and not outgoing.unfinished:
        file = as_file(outgoing.text)
        whole = DiscordText(content="The whole answer:", plain="The whole answer:")
        return (_part(texts[0], []), _part(whole, rows, file=file, file_name=FILE_NAME))
    *before, last = texts
    parts = [*(_part(text, []) for text in before), _part(last, rows)]
    if outgoing.attached:
        name = outgoing.attached_name
        about = DiscordText(content=f"{name}:", plain=f"{name}:")
        parts.insert(0, _part(about, [], file=outgoing.attached, file_name=name))
    return tuple(parts)


def render_file(file: OutgoingFile) -> Part:
    """The message with `file`, which Discord shows or plays by its name's ending, below its caption."""
    said = (
        discord_parts(file.caption, limit=TEXT_CHARS)[0]
        if file.caption
        else DiscordText(content="", plain="")
    )
    body = plain_body(said.content)
    body["attachments"] = [{"description": (file.caption or file.name)[:_ABOUT_CHARS]}]
    return Part(
        body=body,
        plain=said.plain,
        file=file.content,
        file_name=_UNNAMED.sub("_", file.name).strip("_.") or "file",
        file_kind=file.kind,
    )


def named(part: Part, key: str) -> Part:
    """`part` as it is posted under `key`. The name of a reply's file gets a digest of the key, so that a post
    is found although an earlier one had a file of the same name."""
    if part.file_kind is None:
        return part
    stem, dot, ending = part.file_name.rpartition(".")
    mark = nonce_of(key)[:_MARK_DIGITS]
    name = f"{stem}-{mark}{dot}{ending}" if stem else f"{part.file_name}-{mark}"
    return replace(part, file_name=name)


def plain_body(content: str, rows: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """A message body with `content` unchanged; it must be within Discord's limits."""
    return {
        "content": content,
        "components": list(rows),
        "allowed_mentions": dict(NO_MENTIONS),
        "flags": _SUPPRESS_EMBEDS,
    }


def as_plain(part: Part) -> Part:
    """`part` without formatting."""
    return replace(part, body={**part.body, "content": part.plain})


def nonce_of(key: str) -> str:
    """Discord's nonce for a post: 25 characters, the same for the same key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:_NONCE_DIGITS]


def shows(message: Mapping[str, Any], part: Part) -> bool:
    """Whether the platform's message has the text and buttons of `part`. Spaces and invisible characters are
    ignored, because Discord changes them."""
    said = message.get("content")
    same_words = isinstance(said, str) and _seen(said) == _seen(str(part.body.get("content", "")))
    same_buttons = button_ids(message.get("components")) == button_ids(part.body.get("components"))
    return same_words and same_buttons and file_name_of(message) == part.file_name


def file_name_of(message: Mapping[str, Any]) -> str:
    """The name of the message's file; empty for none."""
    for one in mappings(message.get("attachments"), most=1):
        return str(one.get("filename", ""))
    return ""


def _part(
    text: DiscordText, rows: list[dict[str, Any]], *, file: bytes | None = None, file_name: str = ""
) -> Part:
    return Part(body=plain_body(text.content, rows), plain=text.plain, file=file, file_name=file_name)


def _seen(text: str) -> str:
    return "".join(char for char in text if char.isprintable() and not char.isspace())
