"""Erase what a removed person of the page has left: conversations, files, uploads, notes and preferences.

The job is durable with the removal, so that a process that dies in between continues at its next start.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from adapters.guests import chats_of
from gateway.ingress.chat_deletion import ChatDeletion
from gateway.storage.jobs import Job
from gateway.storage.ports import Store
from gateway.storage.speech import ReadAloudWishes, SpeakerKey, SpeakerPreferences
from pipeline.domain.ids import AccountKey, ThreadKey, identity_key

_AGAIN_S = 1.0
_AT_ONCE = 100


class PersonErasure:
    """Runs the jobs of `gateway.people.page_people.PERSON_ERASURE`.

    `is_linked` says whether the identity with a user id is linked to another channel, whose notes stay;
    `discard_uploads` removes the uploads that wait for a message in the chats whose ids begin so, and
    `discard_notes` everything in the workspaces of an owner, by `TurnScope.owner`, and `forget_changes` what
    is kept of it for `/undo files`.
    """

    def __init__(
        self,
        *,
        account: AccountKey,
        store: Store,
        chats: ChatDeletion,
        is_linked: Callable[[str], bool],
        discard_uploads: Callable[[str], Awaitable[None]],
        discard_notes: Callable[[str], Awaitable[None]],
        forget_changes: Callable[[str], Awaitable[None]],
    ) -> None:
        self._account = account
        self._store = store
        self._chats = chats
        self._is_linked = is_linked
        self._discard_uploads = discard_uploads
        self._discard_notes = discard_notes
        self._forget_changes = forget_changes

    async def run(self, job: Job) -> float | None:
        """Erase what the person of the job has left. Returns seconds while a conversation is still there."""
        person, (channel, account) = job.key, self._account
        await self._discard_uploads(chats_of(person))
        own = await self._store.threads_of(channel, account, limit=_AT_ONCE, chat=chats_of(person))
        for key in own:
            await self._chats.begin(ThreadKey.decode(key))
        if own or await self._is_busy(person):
            return _AGAIN_S
        if not self._is_linked(person):
            owner = identity_key(channel, account, person)
            await self._discard_notes(owner)
            await self._store.states.forget(owner)
            await self._store.memories.erase(owner)
            await self._forget_changes(owner)
        await self._store.shield.asked.forget(identity_key(channel, account, person))
        await self._store.crises.forget(identity_key(channel, account, person))
        await self._forget_preferences(SpeakerKey(channel=channel, account=account, user=person))
        return None

    async def _is_busy(self, person: str) -> bool:
        """Whether a turn of the person has not ended: it could still write a note."""
        threads = (ThreadKey.decode(key) for key in await self._store.open_threads())
        return any(
            one.account_key == self._account and one.chat.startswith(chats_of(person)) for one in threads
        )

    async def _forget_preferences(self, speaker: SpeakerKey) -> None:
        voices = self._store.voices
        if await voices.preferences_of(speaker) != SpeakerPreferences():
            await voices.remember_language(speaker, "")
            await voices.want_reading(speaker, ReadAloudWishes(), command="")
