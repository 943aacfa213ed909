"""Tier 1 of the shield: the findings of rules and of a classifier on an action or a result.

The interface for the gate:

    scanner = InjectionScanner()
    assessment = await scanner.assess(parts_of("http_request", payload))
    assessment = await scanner.assess((Part(kind="text", text=page, where="result of fetch_page"),))

Takes time in proportion to the text, of which a bounded part is examined.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from pipeline.domain.errors import ParlourError
from pipeline.shield.injection.disguises import Revealed, revealed
from pipeline.shield.injection.findings import CONFIDENCE, Assessment, Finding, Part, Severity, assessment_of
from pipeline.shield.injection.lexicon import Reading, shipped_lexicon
from pipeline.shield.injection.linear_model import MOST_CHARS, LinearModel, shipped_model
from pipeline.shield.injection.plain_text import plain
from pipeline.shield.injection.rules import shipped_rules

CLASSIFIER = "classifier"
"""The name of the classifier's findings."""
CERTAIN = 0.97
"""A score from which a finding of the classifier is high instead of medium."""
SUPPORT_ODDS = math.e
"""A rule that needs the classifier's support counts down to odds that are so many times smaller than those
of the classifier's threshold."""
_READ = ("text", "argument")
"""The kinds that the classifier reads: language."""
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s|\n|[\u3002\uff01\uff1f]")
_PIECE = 120
"""Characters."""
_SHORTEST = 12
"""Characters that a text needs to be an instruction."""
INLINE_CHARS = 4_000
"""Texts that have more characters together are examined in a thread, so that other turns do not wait."""


class ClassifierUnavailable(ParlourError):
    """The classifier cannot answer; the message says why."""

    code = "classifier_unavailable"


class Classifier(Protocol):
    """A statistical model that recognises injected instructions."""

    @property
    def threshold(self) -> float:
        """The score from which a text counts as an attack."""
        ...

    async def scores(self, texts: Sequence[str]) -> tuple[float, ...]:
        """For each text the probability, from 0 to 1, that it holds an injected instruction.

        Raises ClassifierUnavailable if it cannot answer, also in time.
        """
        ...


class _Question(NamedTuple):
    """A text that the classifier has to read."""

    where: str
    disguise: str
    text: str
    reading: Reading
    supported: tuple[Finding, ...]
    """Findings of rules that need the classifier's support."""


class InjectionScanner:
    """Examines parts. One instance serves every turn."""

    def __init__(self, classifier: Classifier | None = None) -> None:
        """`classifier` is the shipped linear model if it is None. Raises BadWeights or BadRules if the
        package is damaged."""
        self._classifier: Classifier = shipped_model() if classifier is None else classifier
        threshold = self._classifier.threshold
        self._lower = threshold / (threshold + SUPPORT_ODDS * (1 - threshold))
        self._rules = shipped_rules()
        self._lexicon = shipped_lexicon()

    async def assess(self, parts: Iterable[Part]) -> Assessment:
        """The findings in `parts` and their decision. A classifier that cannot answer is a finding that
        escalates."""
        parts = tuple(parts)
        findings: dict[tuple[str, str], Finding] = {}
        if sum(len(part.text) for part in parts) > INLINE_CHARS:
            questions, scores = await asyncio.to_thread(self._by_rules, parts, findings)
        else:
            questions, scores = self._by_rules(parts, findings)
        for one in await self._classified(questions, scores):
            findings.setdefault((one.name, one.where), one)
        return assessment_of(findings.values())

    def _by_rules(
        self, parts: Sequence[Part], findings: dict[tuple[str, str], Finding]
    ) -> tuple[Sequence[_Question], tuple[float, ...] | None]:
        """Add what the rules find; the questions for the classifier, and its scores if it is the shipped
        model, which answers at once."""
        questions: list[_Question] = []
        for part in parts:
            for one in self._examined(part, questions):
                findings.setdefault((one.name, one.where), one)
        model = self._classifier
        if not isinstance(model, LinearModel):
            return questions, None
        for question in questions:
            # In pieces too: words around an order must not hide it.
            if question.supported and self._supports(model, question.reading.text):
                for finding in question.supported:
                    findings.setdefault((finding.name, finding.where), finding)
        return questions, tuple(model.score_of(one.reading) for one in questions)

    def _supports(self, model: LinearModel, text: str) -> bool:
        return any(model.score(piece) >= self._lower for piece in _pieces(text))

    def _examined(self, part: Part, questions: list[_Question]) -> Iterator[Finding]:
        """The findings of rules. What the classifier has to read is added to `questions`."""
        text = part.text[:MOST_CHARS]
        if len(part.text) > MOST_CHARS:
            yield _finding("too-long-to-examine", "low", part.where)
        if part.kind not in _READ and not self._rules.examines(part.kind):
            return
        for rule in self._rules.in_raw(text, part.kind):
            yield rule.finding(part.where, "")
        # An action's type is one of few words.
        disguised = () if part.kind == "type" else revealed(text)
        for one in (Revealed(text=text, disguise="", hidden=False), *disguised):
            shown = plain(one.text)
            asked = part.kind in _READ and len(shown) >= _SHORTEST
            # Patterns alone need no words.
            reads = asked or self._rules.reads_concepts(part.kind)
            reading = self._lexicon.read(shown) if reads else Reading(shown, [], [], [], [], [])
            supported: list[Finding] = []
            for rule in self._rules.in_plain(reading, part.kind, hidden=one.hidden):
                finding = rule.finding(part.where, one.disguise)
                if rule.supported and asked:
                    supported.append(finding)
                else:
                    yield finding
            if asked:
                questions.append(_Question(part.where, one.disguise, one.text, reading, tuple(supported)))

    async def _classified(
        self, questions: Sequence[_Question], scores: tuple[float, ...] | None
    ) -> Sequence[Finding]:
        """The classifier's findings, and those of rules that it supports or cannot judge."""
        if not questions:
            return ()
        if scores is None:
            try:
                scores = await self._classifier.scores([one.text for one in questions])
            except ClassifierUnavailable:
                unsupported = [finding for one in questions for finding in one.supported]
                return [_finding("classifier-unavailable", "medium", questions[0].where), *unsupported]
        found: list[Finding] = []
        for one, score in zip(questions, scores, strict=True):
            if score >= self._lower:
                found += one.supported
            if score >= self._classifier.threshold:
                found.append(_classified(one, score))
        return found


def _pieces(text: str) -> Iterator[str]:
    """The sentences of a text, long ones in overlapping parts."""
    for sentence in _SENTENCE_END.split(text):
        for start in range(0, max(len(sentence) - _PIECE // 2, 1), _PIECE // 2):
            yield sentence[start : start + _PIECE]


def _classified(question: _Question, score: float) -> Finding:
    return Finding(
        name=CLASSIFIER,
        severity="high" if score >= CERTAIN else "medium",
        decision="ESCALATE",
        score=score,
        where=question.where,
        disguise=question.disguise,
    )


def _finding(name: str, severity: Severity, where: str) -> Finding:
    return Finding(name=name, severity=severity, decision="ESCALATE", score=CONFIDENCE[severity], where=where)
