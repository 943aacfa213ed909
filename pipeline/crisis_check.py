"""Have an agent's crisis gate judge what the person of a turn says, before anything else works on it.

For an agent whose graph has the gate as its own first node, whole turns are judged there (`CrisisOfTurn`).
Only the person's own words count: no forwarded or quoted ones, and in a room none of other people.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from pipeline.domain.clock import within
from pipeline.domain.conversation import Conversation
from pipeline.domain.errors import StorageError
from pipeline.domain.messages import ApprovalReply, InboundMessage
from pipeline.runtime.ports import TurnAnswer, UserWords
from pipeline.runtime.workflow_context import CrisisHelp
from pipeline.safety.assessment import CLEAR, GATE_FAILED, CrisisAssessment
from pipeline.safety.classifier import Asked
from pipeline.safety.conversation_entries import entries_of
from pipeline.safety.crisis_gate import CrisisGate
from pipeline.safety.ladder import EarlierEntry
from pipeline.safety.replies import STATIC_REPLY
from pipeline.turn import Turn

_log = logging.getLogger(__name__)

_HISTORY_S = 5.0
"""The longest wait for the conversation before a message is judged alone."""
LEFT_TO_GRAPH: Final = TurnAnswer(text="")
"""In place of a crisis response: the turn's graph gives it, and nothing else comes before the graph."""


class CrisisCheck:
    """Judges the turns of one agent."""

    def __init__(self, gate: CrisisGate | None, *, in_graph: bool = False) -> None:
        """Without a gate the agent is exempt, and nothing is judged. `in_graph`: the agent's graph has the
        gate as a node."""
        self._gate = gate
        self.answer = self._for_graph if in_graph else self._answer
        """The crisis response to what the person says in a turn, or LEFT_TO_GRAPH; None for none."""

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
        return await self._answer(turn)

    async def _for_graph(self, turn: Turn) -> TurnAnswer | None:
        return None if await self._answer(turn) is None else LEFT_TO_GRAPH

    def of(self, turn: Turn) -> CrisisOfTurn | None:
        """The gate for a node of the turn's graph; None without one."""
        return None if self._gate is None else CrisisOfTurn(self._gate, turn)

    async def _answer(self, turn: Turn) -> TurnAnswer | None:
        said = "" if self._gate is None else "\n".join(_said(turn))
        if self._gate is None or not said:
            return None
        history = entries_of(await _known(turn), turn.message.author.id)
        asked = None if self._gate.classifier is None else _asked(turn)
        speech = None if turn.words is None else turn.words.speech
        verdict = await self._gate.judged(said, history, asked, language=speech.language if speech else "")
        turn.crisis_level, turn.judged = verdict.assessment.level, (said, verdict.assessment)
        if not verdict.reply:
            return None
        _log.warning(
            "the crisis response takes the agent's place",
            extra={"message_id": turn.message.message_id, "level": verdict.assessment.level},
        )
        return TurnAnswer(text=verdict.reply, crisis=verdict.assessment)


class CrisisOfTurn:
    """Implements `TurnCrisis`: the same gate, for the words of one turn."""

    def __init__(self, gate: CrisisGate, turn: Turn) -> None:
        self._gate = gate
        self._turn = turn

    @property
    def words(self) -> str:
        """See `TurnCrisis.words`."""
        return "\n".join(_said(self._turn))

    async def assess(self) -> CrisisAssessment:
        """See `TurnCrisis.assess`. Words of others alone are no reason for concern."""
        try:
            judged = self._turn.judged
            if judged is not None and judged[0] == self.words:
                return judged[1]
            said, history = await self._read()
            if not said:
                return CrisisAssessment()
            asked = None if self._gate.classifier is None else _asked(self._turn)
            verdict = await self._gate.judged(said, history, asked, language=_language(self._turn))
        except Exception as error:  # noqa: BLE001 - whatever fails, the message is not passed unchecked
            _log.error("the crisis gate fails", extra={"error": type(error).__name__})
            return CrisisAssessment(level=CLEAR, confidence="low", reason=GATE_FAILED, path="failed")
        return verdict.assessment

    async def help(self, assessment: CrisisAssessment) -> CrisisHelp:
        """See `TurnCrisis.help`."""
        try:
            said, history = await self._read()
            text = self._gate.reply(assessment, said, history, _language(self._turn))
            place = self._gate.place(said, history)
        except Exception as error:  # noqa: BLE001 - a person in danger gets an answer in any case
            _log.error("the crisis response fails", extra={"error": type(error).__name__})
            return CrisisHelp(text=STATIC_REPLY)
        if place is None:
            return CrisisHelp(text=text)
        return CrisisHelp(text=text, location=place.code, resources=place.lines)

    async def _read(self) -> tuple[str, list[EarlierEntry]]:
        """What the person says in the turn, and the conversation before it."""
        turn = self._turn
        return self.words, entries_of(await _known(turn), turn.message.author.id)


def _language(turn: Turn) -> str:
    """The language that was spoken; empty for typed words."""
    speech = None if turn.words is None else turn.words.speech
    return speech.language if speech else ""


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
        return await within(turn.clock, _HISTORY_S, turn.journal.conversation())
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
