"""Messages of ours that Telegram did not confirm: looked for by an edit of the ids where they can be.

A bot may edit its own messages only, and only in the chat that it names. An edit that Telegram takes, or that
changes nothing, has therefore found a message of ours.
"""

from __future__ import annotations

from collections.abc import Iterable

from telegram.error import BadRequest

from adapters.channel import Part
from adapters.telegram.sending import Sender
from pipeline.domain.errors import InvalidInput
from pipeline.domain.ids import ThreadKey

MOST_TRIED = 40
"""Ids of private chats are counted over all chats of a bot: between two messages of one may be many."""


async def adopt(
    sender: Sender, thread: ThreadKey, part: Part, *, repeat: str, labels: Iterable[str], known: Iterable[str]
) -> str:
    """The oldest message of ours above the newest known one and below `repeat`, which shows `part` now; empty
    for none. Raises InvalidInput where there are too many ids, and TelegramError."""
    above = {*labels, repeat}
    if part.file is not None or not repeat.isdecimal():
        raise InvalidInput("telegram: a file cannot be looked for")
    ours = {int(one) for one in (*known, *sender.confirmed(thread)) if one.isdecimal() and one not in above}
    below = [number for number in ours if number < int(repeat)]
    if not below:
        raise InvalidInput("telegram: nothing says behind which message a lost one may be")
    ids = [number for number in range(max(below) + 1, int(repeat)) if str(number) not in above]
    if len(ids) > MOST_TRIED:
        raise InvalidInput(f"telegram: a lost message may be any of {len(ids)}")
    for number in ids:
        try:
            await sender.edit(thread, str(number), part)
        except BadRequest:
            # Somebody else's, in another chat, a file, or not there.
            continue
        return str(number)
    return ""
