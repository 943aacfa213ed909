"""Build the web page for the gateway, with its settings, its access token and its voice files.

A part of the composition root: only `bootstrap` calls it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

from adapters.channel import LiveSpeech, Timeline
from adapters.guests import PagePeople
from adapters.web.adapter import WebAdapter
from adapters.web.inbound import OWNER, author_of
from adapters.web.media import MediaInbox
from adapters.web.security import token_matches
from adapters.web.settings import ACCOUNT, CHANNEL, WebOptions
from adapters.web.text_tables import AddedTables, added_tables
from gateway.app.page_media import PageMedia
from gateway.attachments.intake import Downloads
from gateway.channels.registry import ChannelRegistry
from gateway.config import SecretRef, Secrets, SecretUnavailable, Settings
from gateway.files.links import FileLinks
from gateway.runtime.data_dir import own_web_token
from gateway.runtime.http_server import Addresses
from gateway.speech.read_aloud import AnswerReader, OwnReader
from gateway.speech.speaker_language import AgentSpeechOf
from gateway.storage.blobs import BlobBook
from gateway.storage.ports import Store
from gateway.storage.speech import ReadAloudMode, SpeakerKey, SpeakerPreferenceStore
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ParlourError
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import InboundMessage, MediaRef
from pipeline.domain.timeline import TimelineEntry

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The web channel, which may be switched off."""

    adapter: WebAdapter | None
    media: PageMedia
    """What was uploaded: also for a process that runs turns of the page and serves none."""

    def downloads_of(self, channels: ChannelRegistry, thread: ThreadKey) -> Downloads | None:
        """What fetches the files of a thread's messages; None if its channel is not there."""
        return self.media if thread.channel == CHANNEL else channels.of(thread)

    def show_recorded(self, thread: ThreadKey, entry: TimelineEntry) -> None:
        """Show a recorded entry on the web page. The other channels' apps show a user's words themselves."""
        if self.adapter is not None and thread.channel == self.adapter.name:
            self.adapter.entry_recorded(thread, entry)

    def attach_voice(
        self,
        live: LiveSpeech | None,
        reader: AnswerReader | None,
        preferences: SpeakerPreferenceStore,
        speech_of: AgentSpeechOf,
    ) -> None:
        """Give the page live speech and reading aloud; None for what is switched off."""
        if self.adapter is None:
            return
        own = None if reader is None else OwnReader(reader, preferences, _speaker_in, speech_of)
        self.adapter.attach(live, own)

    async def discard_media(self, message: InboundMessage) -> None:
        """Remove what was uploaded for a finished message: its files are stored elsewhere now."""
        if message.thread.channel != CHANNEL:
            return
        for ref in media_refs(message):
            try:
                await self.media.discard(ref)
            except ParlourError:
                _log.warning("an upload could not be removed", extra={"message_id": message.message_id})

    async def sweep_media(self, store: Store) -> int:
        """Remove the uploads that no unfinished message refers to; return how many."""
        if self.adapter is None:
            return 0
        entries = [
            entry for thread in await store.open_threads() for entry in await store.open_entries(thread)
        ]
        return await self.media.sweep(
            {
                ref.handle
                for entry in entries
                if isinstance(entry.item, InboundMessage)
                for ref in media_refs(entry.item)
            }
        )


def media_refs(message: InboundMessage) -> tuple[MediaRef, ...]:
    """Everything of a message that its channel has as a file."""
    return (*message.attachments, message.voice) if message.voice is not None else message.attachments


def make_page(
    settings: Settings,
    media_dir: Path,
    blobs: BlobBook,
    addresses: Addresses,
    token_check: Callable[[str], bool],
    timeline: Timeline,
    clock: Clock,
    on_wrong_token: Callable[[], None] = lambda: None,
    links: FileLinks | None = None,
    people: PagePeople | None = None,
    wrong_elsewhere: Callable[[str], int] = lambda _network: 0,
) -> Page:
    """Build the page; its adapter is None if it is switched off. It takes files of people and gives
    `links` to stored ones; None: neither."""
    in_store = settings.storage.kind == "postgres"
    media = PageMedia(MediaInbox(media_dir, clock), blobs, clock, in_store=in_store)
    if not settings.channels.web.enabled:
        return Page(adapter=None, media=media)
    added = _added_languages(settings)
    for mistake in (*added.mistakes, *added.missing):
        _log.warning("the page's languages: %s", mistake)
    wanted = WebOptions(
        bot_name=settings.bot.name,
        token_check=token_check,
        allowed_hosts=addresses.hosts,
        allowed_origins=addresses.origins,
        on_wrong_token=on_wrong_token,
        wrong_elsewhere=wrong_elsewhere,
        media_dir=media_dir,
        text_chars=settings.channels.web.max_message_chars,
        voice_enabled=settings.voice.enabled,
        voice_bytes=settings.voice.max_bytes,
        voice_seconds=int(settings.voice.max_seconds),
        file_bytes=0 if links is None else settings.files.max_mb * 1_000_000,
        added_tables=added.tables,
        editing=bool(settings.channels.web.editor),
    )
    return Page(adapter=WebAdapter(wanted, timeline, clock, links, people, media), media=media)


def _added_languages(settings: Settings) -> AddedTables:
    folder = settings.channels.web.texts
    return AddedTables() if folder is None else added_tables(folder)


def languages_state(settings: Settings) -> tuple[bool, str] | None:
    """Whether the page's added languages have no mistakes, and what to say; None where none are added."""
    if settings.channels.web.texts is None:
        return None
    added = _added_languages(settings)
    names = ", ".join(f"{one.name} ({one.tag})" for one in added.tables) or "none"
    return not added.mistakes, "; ".join((names, *added.mistakes, *added.missing))


def _speaker_in(thread: ThreadKey) -> SpeakerKey:
    """The person whose chat on the page it is."""
    return SpeakerKey(channel=CHANNEL, account=ACCOUNT, user=author_of(thread.chat).id)


async def voice_mode(preferences: SpeakerPreferenceStore, person: str) -> ReadAloudMode:
    """When a person of the page, or the owner for an empty id, wants voice messages."""
    speaker = SpeakerKey(channel=CHANNEL, account=ACCOUNT, user=person or OWNER.id)
    return (await preferences.preferences_of(speaker)).reading.mode


def token_check(settings: Settings, secrets: Secrets) -> Callable[[str], bool]:
    """A check of access tokens. Reads a configured token every time, so that a rotated one works at once."""
    reference = settings.channels.web.token
    if reference is not None:
        return partial(_matches, reference)
    token = own_web_token(settings.web_token_path)
    secrets.add(token)
    return lambda presented: token_matches(presented, token)


def metrics_check(settings: Settings, access: Callable[[str], bool]) -> Callable[[str], bool]:
    """A check of tokens for the metrics: the metrics token, or one that `access` accepts."""
    reference = settings.server.metrics_token
    if reference is None:
        return access
    return lambda presented: _matches(reference, presented) or access(presented)


def _matches(reference: SecretRef, presented: str) -> bool:
    try:
        return token_matches(presented, reference.resolve())
    except SecretUnavailable as error:
        # While the file is being replaced every token is refused; the next try reads the file again.
        _log.error("a token cannot be read", extra={"token": str(reference), "reason": str(error)})
        return False
