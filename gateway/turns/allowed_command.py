"""Run the command /allowed: list what its author has allowed for the conversation, and take it back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from gateway.turns.journal import StoreJournal
from pipeline.domain.messages import SessionCommand
from pipeline.shield.ports import Permission, PermissionBook
from pipeline.tools.shown import quoted

_NOTHING = "You have allowed nothing for this conversation."
_LISTED = "You have allowed these for this conversation:\n\n{lines}\n\n`/allowed NUMBER` takes one back."
_LINE = "{number}. {what}"
_GONE = "Taken back: {what}. I ask again from now on."
_ALL_GONE = "Everything that you had allowed for this conversation is taken back. I ask again from now on."
_NO_SUCH = "There is no number {word}. `/allowed` shows what you have allowed."
_ALL = "all"
_WHAT = {"write_file": "writing the file {target}", "fetch_url": "reading pages of {target}"}

OnRevoked = Callable[[Permission], Awaitable[None]]
"""Records in the audit that a permission is taken back. Raises StorageError."""


class AllowedCommand:
    """Runs the command in all threads. Each person sees only what they have allowed themselves."""

    def __init__(self, book: PermissionBook, on_revoked: OnRevoked) -> None:
        self._book = book
        self._on_revoked = on_revoked

    async def run(self, command: SessionCommand, journal: StoreJournal) -> None:
        """List the permissions, or take one or all back. Raises StorageError."""
        person, session = command.author.id, journal.session_id
        given = await self._book.of(session, person)
        word = command.argument.strip().casefold()
        if not given:
            words = _NOTHING
        elif not word:
            lines = [_LINE.format(number=at, what=_what(one)) for at, one in enumerate(given, 1)]
            words = _LISTED.format(lines="\n".join(lines))
        elif word == _ALL:
            await self._revoke(given, session, person)
            words = _ALL_GONE
        elif word.isascii() and word.isdigit() and 1 <= int(word) <= len(given):
            one = given[int(word) - 1]
            await self._revoke([one], session, person)
            words = _GONE.format(what=_what(one))
        else:
            words = _NO_SUCH.format(word=quoted(command.argument)[1:-1][:20])
        await journal.commit_notice(words)

    async def _revoke(self, given: Sequence[Permission], session: str, person: str) -> None:
        for one in given:
            await self._book.revoke(session, person, one.id)
            await self._on_revoked(one)


def _what(one: Permission) -> str:
    target = quoted(one.target)[1:-1].replace("`", "")
    return _WHAT.get(one.type, "{target}").format(target=f"`{target}`")
