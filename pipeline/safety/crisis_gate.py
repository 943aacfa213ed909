"""Judge a person's words, and make the reply that takes the agent's place. Never fails, never logs words.

If the judgement with the earlier messages fails, that of the message alone counts. If that fails too, the
message gets a reply of fixed words: no message passes without a check. Vectors, and a classifier, another
model, are asked where the rules find no clear danger; they can only raise the level.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from pipeline.domain.frozen import dataclass
from pipeline.safety.assessment import CLEAR, GATE_FAILED, NONE, CrisisAssessment
from pipeline.safety.classifier import Asked, CrisisClassifier, higher
from pipeline.safety.ladder import EarlierEntry, assess
from pipeline.safety.patterns import shipped_patterns
from pipeline.safety.plain_words import plain_words
from pipeline.safety.replies import STATIC_REPLY, Follows, crisis_reply, known_language
from pipeline.safety.resources import Country, ResourceBook
from pipeline.safety.vector_judge import VectorJudge

_log = logging.getLogger(__name__)

Assess = Callable[[str, Sequence[EarlierEntry]], CrisisAssessment]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrisisVerdict:
    """What the gate says about a message."""

    assessment: CrisisAssessment
    reply: str = ""
    """The crisis response; empty if the message is the agent's."""


class CrisisGate:
    """Judges the messages of one agent's conversations."""

    def __init__(
        self,
        resources: ResourceBook,
        *,
        country: str = "",
        language: str = "",
        assess: Assess = assess,
        vectors: VectorJudge | None = None,
        classifier: CrisisClassifier | None = None,
    ) -> None:
        """`country`: the code of the one where people are who have named none; `language`: the agent's."""
        self._resources = resources
        self._country = resources.of(country) if country else None
        self._language = language
        self._assess = assess
        self._vectors = vectors
        self.classifier = classifier
        """None where the rules alone judge."""

    def judge(self, text: str, history: Sequence[EarlierEntry] = (), *, language: str = "") -> CrisisVerdict:
        """The verdict of the rules on `text` after `history`. `language`: the one that was spoken; empty if
        unknown."""
        return self._verdict(self._assessed(text, history), text, history, language)

    async def judged(
        self, text: str, history: Sequence[EarlierEntry], asked: Asked | None = None, *, language: str = ""
    ) -> CrisisVerdict:
        """As `judge`, with vectors, and then the classifier where no clear danger was found, if there are
        any. Without `asked` no classifier judges."""
        assessment = self._assessed(text, history)
        # An idiom and a denial are no missing words: there the rules are sure.
        if assessment.override == "none" and self._vectors is not None:
            assessment = await self._vectors.assess(text, history, assessment)
        if assessment.level < CLEAR and self.classifier is not None and asked is not None:
            said = await self.classifier.assess(text, history, asked)
            if said is not None:
                assessment = higher(assessment, said)
                if said.llm_failed:
                    self.classifier.failed(assessment.level)
        if assessment.level < CLEAR:
            return CrisisVerdict(assessment=assessment)
        return self._verdict(assessment, text, history, language)

    def _verdict(
        self, assessment: CrisisAssessment, text: str, history: Sequence[EarlierEntry], language: str
    ) -> CrisisVerdict:
        if not assessment.needs_crisis_response:
            return CrisisVerdict(assessment=assessment)
        return CrisisVerdict(assessment=assessment, reply=self.reply(assessment, text, history, language))

    def alarms(self, text: str) -> bool:
        """Whether `text` by itself gets the crisis response."""
        return bool(text) and self._assessed(text, ()).needs_crisis_response

    def _assessed(self, text: str, history: Sequence[EarlierEntry]) -> CrisisAssessment:
        for earlier in (history, ()):
            try:
                return self._assess(text, earlier)
            except Exception as error:  # noqa: BLE001 - whatever fails, the message is not passed unchecked
                _log.error("the crisis gate fails", extra={"error": type(error).__name__})
        return CrisisAssessment(level=CLEAR, confidence="low", reason=GATE_FAILED, path="failed")

    def reply(
        self,
        assessment: CrisisAssessment,
        text: str,
        history: Sequence[EarlierEntry] = (),
        language: str = "",
    ) -> str:
        """The crisis response to `text` after `history`, whose level is assessed."""
        if assessment.path == "failed":
            return STATIC_REPLY
        try:
            return crisis_reply(
                assessment.level,
                language=known_language(assessment.language, language, self._language),
                country=self.place(text, history),
                resources=self._resources,
                follows=self._follows(assessment, text),
            )
        except Exception as error:  # noqa: BLE001 - a person in danger gets an answer in any case
            _log.error("the crisis response fails", extra={"error": type(error).__name__})
            return STATIC_REPLY

    def _follows(self, assessment: CrisisAssessment, text: str) -> Follows:
        """What the message is to the response before it."""
        if not assessment.reason.endswith(" earlier"):
            return ""
        accepts = shipped_patterns().first("accepts", plain_words(text)) is not None
        return "accepted" if accepts and self._assessed(text, ()).level == NONE else "again"

    def place(self, text: str, history: Sequence[EarlierEntry] = ()) -> Country | None:
        """Where the person is: as the newest of their messages says that names a country, else as
        configured."""
        own = [entry.text for entry in history if entry.said_by == "person"]
        for said in (text, *reversed(own)):
            if (found := self._resources.named_in(said)) is not None:
                return found
        return self._country
