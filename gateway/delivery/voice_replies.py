"""Send answers as voice messages to people who turned that on.

A voice message follows the written answer and never replaces it; a failure is logged. Synthesis takes
seconds, so it runs outside the chat's queue, which only sends the result. It starts when the answer is
recorded as sent. A process that dies in between loses the voice message and never sends it twice, because
there is no recovery for it.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Protocol

from typing_extensions import TypeIs

from adapters.channel import (
    Failure,
    OutboundReply,
    PostingChannel,
    Receipt,
    VoiceClip,
    VoicePostingChannel,
)
from gateway.channels.registry import ChannelRegistry
from gateway.delivery.chat_queue import ChatQueue, Work
from gateway.delivery.platform_calls import BLOCKED_S, MOST_ATTEMPTS
from gateway.runtime.crash_labels import CrashLabels
from gateway.runtime.tasks import Supervisor
from gateway.speech.read_aloud import AnswerReader
from gateway.speech.speaker_language import AgentSpeechOf, preferences_or_none, speaker_of
from gateway.storage.speech import SpeakerPreferenceStore
from pipeline.domain.clock import Clock
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.ids import ThreadKey

_log = logging.getLogger(__name__)

SPEAK_S = 150.0
"""An upper bound: longer than the synthesizer's own limit for the longest text."""
_LONGEST_WAIT_S = 60.0
_MOST_LIMITED = 10
"""Attempts where the platform asks to wait: other posts of the chat may use up what it allows."""


class SpeakingChannel(PostingChannel, VoicePostingChannel, Protocol):
    """A posting channel with voice messages."""


def has_voice_messages(channel: object) -> TypeIs[SpeakingChannel]:
    """Whether a channel is a SpeakingChannel; `isinstance` would be too slow for every answer."""
    return hasattr(channel, "post_voice")


class VoiceReplies:
    """Sends a voice message after an answer to people who turned that on. Does nothing without a reader."""

    def __init__(
        self,
        *,
        reader: AnswerReader | None,
        preferences: SpeakerPreferenceStore,
        speech_of: AgentSpeechOf,
        channels: ChannelRegistry,
        clock: Clock,
        supervisor: Supervisor,
        crash_labels: CrashLabels,
    ) -> None:
        self._reader = reader
        self._preferences = preferences
        self._speech_of = speech_of
        self._channels = channels
        self._clock = clock
        self._supervisor = supervisor
        self._crash_labels = crash_labels

    def possible(self, thread: ThreadKey) -> bool:
        """Whether answers can be read aloud in this chat."""
        adapter = self._channels.of(thread)
        return self._reader is not None and has_voice_messages(adapter)

    def follow(self, adapter: PostingChannel, queue: ChatQueue, reply: OutboundReply) -> None:
        """Read an answer that is recorded as sent aloud, if its asker turned that on. Returns at once."""
        reader = self._reader
        if reader is None or reply.role != "assistant" or not reply.author:
            return
        if has_voice_messages(adapter):
            work = self._read(reader, adapter, queue, reply)
            self._supervisor.spawn(work, name="voice reply")

    async def _read(
        self, reader: AnswerReader, adapter: SpeakingChannel, queue: ChatQueue, reply: OutboundReply
    ) -> None:
        speaker = speaker_of(reply.thread, reply.author)
        preferences = await preferences_or_none(self._preferences, speaker)
        wishes = preferences.reading
        if wishes.mode == "off" or (wishes.mode == "auto" and not reply.heard):
            return
        agent = await self._speech_of(
            reply.thread, reply.author, private=reply.private, message_id=reply.message_id
        )
        language = agent.read_in(preferences.language)
        try:
            async with self._clock.timeout(SPEAK_S):
                clip = await reader.read(reply.text, language=language, voice=agent.voice, wishes=wishes)
        except (MediaUnavailable, TimeoutError) as error:
            why = str(error) or "it took too long"
            _log.warning("an answer was not read aloud", extra={"reason": why})
            return
        queue.submit(lambda: self._post(adapter, queue, reply, clip))

    async def _post(
        self,
        adapter: SpeakingChannel,
        queue: ChatQueue,
        reply: OutboundReply,
        clip: VoiceClip,
        attempt: int = 1,
    ) -> None:
        """Post the clip; try again only if the platform states that it did not accept it."""
        failure = await queue.calls.run(partial(self._attempt, adapter, reply, clip))
        if not isinstance(failure, Failure):
            self._crash_labels.reach("voice-after")
            return
        again = failure.kind in ("rate_limit", "transient") and not failure.maybe_delivered
        limited = failure.kind == "rate_limit"
        if not again or attempt >= (_MOST_LIMITED if limited else MOST_ATTEMPTS):
            _log.warning("a voice message was not posted", extra={"reason": failure.message})
            return
        wait = queue.limiter.wait_s() if limited else failure.retry_after_s or BLOCKED_S
        # Wait outside the queue, so that the next written answer is not delayed.
        post = partial(self._post, adapter, queue, reply, clip, attempt + 1)
        later = self._later(min(wait, _LONGEST_WAIT_S), queue, post)
        self._supervisor.spawn(later, name="voice reply, again")

    async def _later(self, wait_s: float, queue: ChatQueue, post: Work) -> None:
        await self._clock.sleep(wait_s)
        queue.submit(post)

    async def _attempt(self, adapter: SpeakingChannel, reply: OutboundReply, clip: VoiceClip) -> Receipt:
        self._crash_labels.reach("voice-before")
        key = f"{reply.key}:v"
        return await adapter.post_voice(reply.thread, clip, key=key, reply_handle=reply.reply_handle)
