"""Pair strangers in private chats by code, so that the bot answers them.

The bot shows a stranger a code once, and the owner approves it with `parlour pair` on the gateway's machine
(`gateway/cli/pair.py`). Nothing that the stranger writes is kept; the code is kept only as a hash. The access
policy decides which chats use pairing.
"""

from __future__ import annotations

from gateway.people.codes import hash_of, new_code
from gateway.storage.pairings import PairedChat, PairingBook, PairingRequest
from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author

VALID_S = 15 * 60.0
SILENT_S = 3600.0
"""Seconds in which a stranger who was shown a code gets no further reply."""
MAX_OPEN = 20
"""The most unconfirmed codes on one account."""
_MAX_NAME_CHARS = 80
_INVITATION = (
    "I do not know you yet. Your code is {code}, for the next 15 minutes: "
    "the owner of this bot lets you in with `parlour pair {code}`."
)


class PairingService:
    """Issues codes to strangers and looks up who is paired."""

    def __init__(self, book: PairingBook, clock: Clock) -> None:
        self._book = book
        self._clock = clock

    async def is_paired(self, thread: ThreadKey, author: Author) -> bool:
        """Whether the owner has paired this person in this chat. Raises StorageError."""
        return await self._book.is_paired(_place(thread, author))

    async def invitation(self, thread: ThreadKey, author: Author) -> str:
        """The line with a fresh code; empty for a person who got one within the hour, and while too many
        codes are open. Raises StorageError."""
        code = new_code()
        now = self._clock.now()
        request = PairingRequest(
            place=_place(thread, author),
            name=author.name[:_MAX_NAME_CHARS],
            code_hash=hash_of(code),
            asked_at=now,
            expires_at=now + VALID_S,
        )
        noted = await self._book.ask(request, limit=MAX_OPEN, again_after_s=SILENT_S)
        return _INVITATION.format(code=code) if noted else ""


def _place(thread: ThreadKey, author: Author) -> PairedChat:
    return PairedChat(channel=thread.channel, account=thread.account, chat=thread.chat, user=author.id)
