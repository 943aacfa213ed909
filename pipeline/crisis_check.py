"""Have an agent's crisis gate judge what the person of a turn says, before anything else works on it.

Only the person's own words count: no forwarded or quoted ones, and in a room none of other people.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from pipeline.domain.conversation import Conversation, PastTurn
from pipeline.domain.errors import StorageError
from pipeline.domain.messages import ApprovalReply, InboundMessage
from pipeline.runtime.ports import TurnAnswer, UserWords
from pipeline.safety.classifier import Asked
from pipeline.safety.crisis_gate import CrisisGate
from pipeline.safety.ladder import WINDOW, Entry
from pipeline.turn import Turn

_log = logging.getLogger(__name__)

_HISTORY_S = 5.0
"""The longest wait for the conversation before a message is judged alone."""


class CrisisCheck:
    """Judges the turns of one agent."""

    def __init__(self, gate: CrisisGate | None) -> None:
        """Without a gate the agent is exempt, and nothing is judged."""
        self._gate = gate

    def alarms(self, text: str) -> bool:
        """Whether `text` by itself gets the crisis response."""
        return self._gate is not None and self._gate.alarms(text)

    async def at_sight(self, turn: Turn) -> TurnAnswer | None:
        """The crisis response to what is typed beside a voice note or files, before these are fetched, which
        may fail; None if there is none."""
        message = turn.message
        if turn.words is not None or isinstance(message, ApprovalReply):
            return None
        if not (message.voice is not None or message.has_other_content) or not self.alarms(_typed(message)):
            return None
        turn.words = turn.written or UserWords(text=message.text)
        return await self.answer(turn)

    async def answer(self, turn: Turn) -> TurnAnswer | None:
        """The crisis response to what the person says in the turn; None for none."""
        said = "" if self._gate is None else "\n".join(_said(turn))
        if self._gate is None or not said:
            return None
        speech = None if turn.words is None else turn.words.speech
        history = _history(await _known(turn), turn.message.author.id)
        language = speech.language if speech else ""
        asked = None if self._gate.classifier is None else _asked(turn)
        verdict = await self._gate.judged(said, history, asked, language=language)
        turn.crisis_level = verdict.assessment.level
        if not verdict.reply:
            return None
        _log.warning(
            "the crisis response takes the agent's place",
            extra={"message_id": turn.message.message_id, "level": verdict.assessment.level},
        )
        return TurnAnswer(text=verdict.reply, crisis=verdict.assessment)


def _asked(turn: Turn) -> Asked:
    return Asked(
        session_id=turn.journal.session_id,
        message_id=turn.message.message_id,
        thread=turn.message.thread,
        author=turn.message.author,
        person=turn.person,
        private=turn.message.private,
        off_record=turn.journal.mode == "otr",
        agent=turn.agent,
    )


async def _known(turn: Turn) -> Conversation:
    """The conversation before the turn; an empty one if it cannot be read in time: the message is judged
    without it then."""
    try:
        async with turn.clock.timeout(_HISTORY_S):
            return await turn.journal.conversation()
    except (StorageError, TimeoutError) as error:
        _log.error("a message is judged without its history", extra={"error": type(error).__name__})
        return Conversation()


def _said(turn: Turn) -> Iterator[str]:
    """The person's own words in the messages of the turn, as far as they are known."""
    yield from filter(None, (_typed(turn.message), _heard(turn.message, turn.words)))
    for one in turn.joined:
        yield from filter(None, (_typed(one.message), _heard(one.message, one.words)))


def _typed(message: InboundMessage | ApprovalReply) -> str:
    """What is typed or said live in the message."""
    if isinstance(message, ApprovalReply):
        return "" if message.expired else message.choice
    return "" if message.forwarded else message.text


def _heard(message: InboundMessage | ApprovalReply, words: UserWords | None) -> str:
    """What a voice note says."""
    if isinstance(message, ApprovalReply) or message.voice is None or words is None:
        return ""
    own = words.speech is None or not words.speech.forwarded
    return words.text if own and not message.forwarded else ""


def _history(known: Conversation, author: str) -> list[Entry]:
    """The newest entries of the conversation between the author and the bot."""
    return [entry for past in known.turns[-WINDOW // 2 :] for entry in _entries(past, author)]


def _entries(past: PastTurn, author: str) -> Iterator[Entry]:
    """The entries of an earlier turn: what the author said, and what the bot answered."""
    source = past.source
    if source.author in ("", author):
        yield Entry("person", source.text or past.messages[0].content)
    last = past.messages[-1]
    if last.role == "assistant":
        yield Entry("bot", last.content)
