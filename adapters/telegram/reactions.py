"""Parse an update about a person's reaction. Pure, for any input.

Telegram sends a person's reactions to a message before and after the change, and none of anonymous people.
Its ordinary reactions have thumbs, but no tick and no cross.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.identity import derived_message_id
from adapters.json_fields import amount, integer, mapping, mappings, text
from adapters.telegram.inbound import ParseContext, author_of
from adapters.telegram.settings import CHANNEL
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Mark, Reaction
from pipeline.domain.reactions import mark_of

_MOST = 20
_EMOJI_CHARS = 16


def parse_reactions(update: Mapping[str, Any], context: ParseContext) -> tuple[Reaction, ...]:
    """The reactions that were removed and those that were added, of the kinds that mean something."""
    number, change = integer(update.get("update_id")), mapping(update.get("message_reaction"))
    chat, target = integer(mapping(change.get("chat")).get("id")), integer(change.get("message_id"))
    if number is None or not chat or target is None:
        return ()
    author = author_of(mapping(change.get("user")), {}, chat)
    if author is None:
        return ()
    before, after = _marks(change.get("old_reaction")), _marks(change.get("new_reaction"))
    changed = [(mark, False) for mark in before if mark not in after]
    changed += [(mark, True) for mark in after if mark not in before]
    reactions = []
    for mark, on in changed:
        native_id = f"u{number}:{mark}"
        reactions.append(
            Reaction(
                message_id=derived_message_id(CHANNEL, context.account, native_id),
                native_id=native_id,
                thread=ThreadKey(channel=CHANNEL, account=context.account, chat=str(chat)),
                author=author,
                received_at=amount(change.get("date")) or context.received_at,
                mark=mark,
                on=on,
                target=str(target),
                private=chat > 0,
            )
        )
    return tuple(reactions)


def _marks(reactions: object) -> list[Mark]:
    emojis = (text(one.get("emoji"), most=_EMOJI_CHARS) for one in mappings(reactions, most=_MOST))
    return list(dict.fromkeys(mark for emoji in emojis if (mark := mark_of(emoji)) is not None))
