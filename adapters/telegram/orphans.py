"""Find the bot's messages that Telegram did not confirm, by editing the ids that they can have.

A bot may edit only its own messages, and only in the given chat. An edit that succeeds, or that
changes nothing, has therefore found one of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from telegram.error import BadRequest

from adapters.channel import Part
from adapters.telegram.sending import Sender
from pipeline.domain.errors import InvalidInput
from pipeline.domain.ids import ThreadKey

MOST_TRIED = 40
"""Ids of private chats are counted over all chats of a bot: two messages of one chat may be far apart."""


async def adopt(
    sender: Sender, thread: ThreadKey, part: Part, *, repeat: str, labels: Iterable[str], known: Iterable[str]
) -> str:
    """The bot's oldest message above the newest known one and below `repeat`, which shows `part` now; empty
    for none. Raises InvalidInput where there are too many ids, and TelegramError."""
    above = {*labels, repeat}
    if not repeat.isdecimal():
        raise InvalidInput(f"telegram: {repeat!a} is not the id of a message")
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
            # Another author's, in another chat, a file or a text where the other is sought, or missing.
            continue
        return str(number)
    return ""
