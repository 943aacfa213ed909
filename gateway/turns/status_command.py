"""Run the command /status: what answers in a chat, with which settings, and what waits there."""

from __future__ import annotations

from collections.abc import Callable

from gateway import __version__
from gateway.agents.agent_book import Agent, AgentBook
from gateway.speech.speaker_language import speaker_of
from gateway.storage.ports import Store
from gateway.storage.speech import SpeakerPreferenceStore
from gateway.turns.journal import StoreJournal
from pipeline.domain.chat import estimate_tokens
from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import InboundMessage, SessionCommand
from voice.transcription.languages import language_name

_LINES = (
    "- Agent: `{agent}`",
    "- Model: `{model}`",
    "- This conversation is {mode}.",
    "- Context: about {used:,} of {window:,} tokens ({percent} %)",
    "- Messages that wait: {waiting}",
    "- Questions that wait for an answer: {questions}",
)
_WAITS = "- Runs that wait for a time: {waits}"
_LANGUAGE = "- Language that you spoke last: {language}"
_VOICE = "- Voice replies: {voice}"
_VERSION = "- Parlour {version}"


class StatusCommand:
    """Runs the command in all threads."""

    def __init__(
        self,
        *,
        store: Store,
        preferences: SpeakerPreferenceStore,
        agents: AgentBook,
        can_speak: Callable[[ThreadKey], bool],
        clock: Clock,
    ) -> None:
        """`can_speak`: whether answers can be read aloud in a chat."""
        self._store = store
        self._preferences = preferences
        self._agents = agents
        self._can_speak = can_speak
        self._clock = clock

    async def run(self, command: SessionCommand, journal: StoreJournal) -> None:
        """Show the status. What concerns the author alone is left out where others read along. Raises
        StorageError."""
        agent = self._agents.answering(
            command.thread, command.author.id, private=command.private, chosen=journal.chosen_agent
        ).using(journal.chosen_model)
        lines = [await self._conversation(command, journal, agent)]
        if command.private:
            lines += await self._speech(command)
        lines.append(_VERSION.format(version=__version__))
        await journal.commit_notice("\n".join(lines))

    async def _conversation(self, command: SessionCommand, journal: StoreJournal, agent: Agent) -> str:
        thread = command.thread.encode()
        known = await journal.conversation()
        used = known.tokens + (estimate_tokens(known.summary.text) if known.summary is not None else 0)
        window = agent.models.context_tokens
        entries = await self._store.open_entries(thread)
        pending = await self._store.pending_interactions(thread, now=self._clock.now())
        waits = sum(one.asks == "nothing" for one in pending)
        lines = (*_LINES, _WAITS.format(waits=waits)) if waits else _LINES
        return "\n".join(lines).format(
            agent=agent.name,
            model=agent.models.name,
            mode="on the record" if journal.mode == "normal" else "off the record",
            used=used,
            window=window,
            percent=round(100 * used / window) if window else 0,
            waiting=sum(isinstance(one.item, InboundMessage) for one in entries),
            questions=len(pending) - waits,
        )

    async def _speech(self, command: SessionCommand) -> list[str]:
        speaker = speaker_of(command.thread, command.author.id)
        preferences = await self._preferences.preferences_of(speaker)
        lines = []
        if preferences.language:
            name = language_name(preferences.language) or preferences.language
            lines.append(_LANGUAGE.format(language=name))
        if self._can_speak(command.thread):
            lines.append(_VOICE.format(voice=preferences.reading.mode))
        return lines
