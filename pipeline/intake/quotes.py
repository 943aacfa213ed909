"""Add a message's context to its text: the passage it replies to, a mark if it was forwarded, the messages
it forwards, and its attachments.

The result is stored, and the model reads it. Not here: how a channel shows it.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

from pipeline.domain.attachments import attached_note
from pipeline.domain.conversation import FORWARDED_MARK
from pipeline.domain.messages import InboundMessage
from pipeline.domain.rooms import line_name
from pipeline.intake.cleaning import clean_text
from pipeline.runtime.attachments import Taken
from pipeline.runtime.ports import UserWords

MAX_QUOTED_CHARS = 500
MAX_PASSED_ON_CHARS = 20_000
_ATTACHED = "\n\n[Attached: "
_CONTEXT = attrgetter("forwarded", "quoted", "passed_on", "attachments", "unusable")


def in_context(message: InboundMessage, words: str, taken: Taken | None = None) -> str:
    """`words`, typed or transcribed, in the context of `message`: above them its quote as a Markdown quote
    and a mark if the message was forwarded, below them the messages it forwards and its attachments; once
    they are `taken`, only those that cannot be used. Without any of these, `words` unchanged."""
    if taken is None and not any(_CONTEXT(message)):
        return words  # most messages
    parts = [f"{FORWARDED_MARK}\n{words}" if message.forwarded else words]
    if quoted := clean_text(message.quoted):
        # In a private chat it is clear who wrote it.
        name = "" if message.private else line_name(message.quoted_by)
        parts.insert(0, _quote(f"{name}: {quoted}" if name else quoted, MAX_QUOTED_CHARS))
    if passed_on := clean_text(message.passed_on):
        parts.append(f"{FORWARDED_MARK}\n{_quote(passed_on, MAX_PASSED_ON_CHARS)}")
    refs = message.attachments if taken is None else taken.unused
    if attached := attached_note(refs, message.unusable):
        parts.append(attached)
    return "\n\n".join(part for part in parts if part.strip()) if len(parts) > 1 else parts[0]


def with_files(words: UserWords, taken: Taken) -> UserWords:
    """`words` with the files that came with them."""
    return replace(words, files=taken.files, attached=taken.attached, left_out=taken.left_out)


def room_name(message: InboundMessage) -> str:
    """The author's name to put before the message in a room; empty in a private chat."""
    return "" if message.private else line_name(message.author.name, message.author.id)


def own_words(text: str) -> str:
    """The author's own words in `text`, which `in_context` made; all of `text` where it has none. For flags:
    an author is not flagged for text that other people wrote."""
    above, gap, words = text.partition("\n\n")
    quotes = bool(gap) and all(line.startswith(">") for line in above.split("\n"))
    words = words if quotes else text
    before, _, note = words.rpartition(_ATTACHED)
    if note.endswith("]") and "\n" not in note:
        words = before
    before, gap, passed_on = words.rpartition(f"\n\n{FORWARDED_MARK}\n")
    if gap and all(line.startswith(">") for line in passed_on.split("\n")):
        words = before
    return words.removeprefix(FORWARDED_MARK).strip() or text


def _quote(text: str, limit: int) -> str:
    if len(text) > limit:
        text = text[: limit - 1].rstrip() + "…"
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def quotes(text: str) -> bool:
    """Whether `text`, made by `in_context`, begins with a quoted passage, also after a line with its author's
    name."""
    return text.startswith(">") or text.startswith(">", text.find("\n") + 1)
