"""Run the command /history: search the conversations of a person with the bot."""

from __future__ import annotations

from datetime import UTC, datetime

from gateway.people.directory import PersonDirectory
from gateway.storage.ports import Store
from gateway.storage.search import FoundMessage, excerpt_of, terms_of
from gateway.turns.journal import StoreJournal
from pipeline.domain.messages import SessionCommand

_IN_A_ROOM = "Others read along here. Send `/history` to me in private."
_NO_WORDS = "Write what you look for behind the command: `/history green tea`."
_NOTHING = "I found nothing with these words in your private conversations with me."
_FOUND = "The newest of what I found:\n\n{lines}"
_LINE = "- {day}, {who}: {excerpt}"
_WHO = {"user": "you", "assistant": "I"}
_MOST = 8


class HistorySearch:
    """Runs the command in all threads."""

    def __init__(self, store: Store, people: PersonDirectory) -> None:
        self._store = store
        self._people = people

    async def run(self, command: SessionCommand, journal: StoreJournal) -> None:
        """Show what was found. The line quotes, so it is forgotten once it is sent. Raises StorageError."""
        words = command.argument
        if not command.private:
            await journal.commit_notice(_IN_A_ROOM, forgotten=True)
        elif not terms_of(words):
            await journal.commit_notice(_NO_WORDS, forgotten=True)
        else:
            people = self._people.identities_of(command.thread, command.author.id)
            found = await self._store.search.find(words, people, limit=_MOST)
            lines = "\n".join(_line(said, words) for said in found)
            await journal.commit_notice(_FOUND.format(lines=lines) if found else _NOTHING, forgotten=True)


def _line(said: FoundMessage, words: str) -> str:
    day = datetime.fromtimestamp(said.at, UTC).date().isoformat()
    return _LINE.format(day=day, who=_WHO[said.kind], excerpt=excerpt_of(said.text, words))
