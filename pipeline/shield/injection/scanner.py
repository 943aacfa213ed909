"""Tier 1 of the shield: the findings of rules and of a classifier on an action or a result.

The interface for the gate:

    scanner = InjectionScanner()
    assessment = await scanner.assess(parts_of("http_request", payload))
    assessment = await scanner.assess((ScanPart(kind="text", text=page, where="result of fetch_page"),))

Takes time in proportion to the text, of which a bounded part is examined.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from pipeline.domain.errors import ParlourError
from pipeline.shield.injection.disguises import Revealed, revealed
from pipeline.shield.injection.findings import (
    CONFIDENCE,
    NO_FINDINGS,
    Assessment,
    Kind,
    ScanFinding,
    ScanPart,
    Severity,
    assessment_of,
)
from pipeline.shield.injection.lexicon import NO_PLACES, LexiconReading, shipped_lexicon
from pipeline.shield.injection.linear_model import MOST_CHARS, LinearModel, shipped_model
from pipeline.shield.injection.plain_text import plain
from pipeline.shield.injection.rules import shipped_rules
from pipeline.shield.injection.undisguised import may_hide

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
_NAME_CHARS: Mapping[Kind, int] = {
    "type": 64,
    "path": 256,
    "url": 256,
    "argument": 32,
    "command": -1,
    "text": -1,
}
"""The most characters of a name of each kind: a path, an address, a title. Names recur, and what was found
in them is kept."""
_MOST_NAMES = 1_000
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
    reading: LexiconReading
    supported: tuple[ScanFinding, ...]
    """Findings of rules that need the classifier's support."""


class _Examined(NamedTuple):
    """What is known of one part."""

    findings: tuple[ScanFinding, ...]
    """Of rules."""
    questions: tuple[_Question, ...] = ()
    """What a classifier that does not answer at once has to read."""
    supported: tuple[ScanFinding, ...] = ()
    """Of rules that the shipped model supports for a sentence of the text."""
    classified: tuple[ScanFinding, ...] = ()
    """Of the shipped model, and of rules that it supports for the text."""


class _Names(dict[ScanPart, _Examined]):
    """The names that were examined. A table that is full begins again."""

    def __init__(self, examine: Callable[[ScanPart], _Examined]) -> None:
        super().__init__()
        self._examine = examine

    def __missing__(self, part: ScanPart) -> _Examined:
        if len(self) >= _MOST_NAMES:
            self.clear()
        found = self[part] = self._examine(part)
        return found


class InjectionScanner:
    """Examines parts. One instance serves every turn."""

    def __init__(self, classifier: Classifier | None = None) -> None:
        """`classifier` is the shipped linear model if it is None. Raises BadInjectionModel or BadRules if the
        package is damaged."""
        self._classifier: Classifier = shipped_model() if classifier is None else classifier
        self._model = self._classifier if isinstance(self._classifier, LinearModel) else None
        threshold = self._classifier.threshold
        self._lower = threshold / (threshold + SUPPORT_ODDS * (1 - threshold))
        self._rules = shipped_rules()
        self._lexicon = shipped_lexicon()
        self._names = _Names(self._by_rules)

    async def assess(self, parts: Iterable[ScanPart]) -> Assessment:
        """The findings in `parts` and their decision. A classifier that cannot answer is a finding that
        escalates."""
        parts = tuple(parts)
        if sum([len(part.text) for part in parts]) > INLINE_CHARS:
            examined = await asyncio.to_thread(self._all_examined, parts)
        else:
            examined = self._all_examined(parts)
        found = [finding for one in examined for finding in one.findings]
        if self._model is None:
            found += await self._classified([question for one in examined for question in one.questions])
        else:
            found += [finding for one in examined for finding in one.supported]
            found += [finding for one in examined for finding in one.classified]
        if not found:
            return NO_FINDINGS
        findings: dict[tuple[str, str], ScanFinding] = {}
        for finding in found:
            findings.setdefault((finding.name, finding.where), finding)
        return assessment_of(findings.values())

    def _all_examined(self, parts: Sequence[ScanPart]) -> list[_Examined]:
        """Each part examined; names that were examined before are not examined again."""
        return [
            self._names[part] if len(part.text) <= _NAME_CHARS[part.kind] else self._by_rules(part)
            for part in parts
        ]

    def _by_rules(self, part: ScanPart) -> _Examined:
        """The part, examined by the rules and the shipped model, which answers at once."""
        questions: list[_Question] = []
        findings = tuple(self._examined(part, questions))
        model = self._model
        if model is None or not questions:
            return _Examined(findings, tuple(questions))
        # In pieces too: words around an order must not hide it.
        supported = [
            finding
            for one in questions
            if one.supported and self._supports(model, one.reading.text)
            for finding in one.supported
        ]
        classified = self._judged(questions, [model.score_of(one.reading) for one in questions])
        return _Examined(findings, (), tuple(supported), tuple(classified))

    def _supports(self, model: LinearModel, text: str) -> bool:
        return any(model.score(piece) >= self._lower for piece in _pieces(text))

    def _examined(self, part: ScanPart, questions: list[_Question]) -> Iterator[ScanFinding]:
        """The findings of rules. What the classifier has to read is added to `questions`."""
        text, kind = part.text[:MOST_CHARS], part.kind
        if len(part.text) > MOST_CHARS:
            yield _finding("too-long-to-examine", "low", part.where)
        if kind not in _READ and not self._rules.examines(kind):
            return
        for rule in self._rules.in_raw(text, kind):
            yield rule.finding(part.where, "")
        words, found = self._of_one(Revealed(text=text, disguise="", hidden=False), part, questions)
        yield from found
        # An action's type is one of few words.
        if kind != "type" and may_hide(text, words):
            for one in revealed(text):
                yield from self._of_one(one, part, questions)[1]

    def _of_one(
        self, one: Revealed, part: ScanPart, questions: list[_Question]
    ) -> tuple[Sequence[str] | None, Sequence[ScanFinding]]:
        """The words of the text itself, or of one that was disguised in it, if any rule reads them; and its
        findings, as `_examined`."""
        kind, shown = part.kind, plain(one.text)
        asked = kind in _READ and len(shown) >= _SHORTEST
        # Patterns alone need no words.
        reads = asked or self._rules.reads_concepts(kind)
        reading = self._lexicon.read(shown) if reads else LexiconReading(shown, [], NO_PLACES, [], [], [])
        found: list[ScanFinding] = []
        supported: list[ScanFinding] = []
        for rule in self._rules.in_plain(reading, kind, hidden=one.hidden):
            waits = rule.supported and asked
            (supported if waits else found).append(rule.finding(part.where, one.disguise))
        if asked:
            questions.append(_Question(part.where, one.disguise, one.text, reading, tuple(supported)))
        return reading.words if reads else None, found

    async def _classified(self, questions: Sequence[_Question]) -> Sequence[ScanFinding]:
        """The findings of a classifier that does not answer at once, and those of rules that it supports or
        cannot judge."""
        if not questions:
            return ()
        try:
            scores = await self._classifier.scores([one.text for one in questions])
        except ClassifierUnavailable:
            unsupported = [finding for one in questions for finding in one.supported]
            return [_finding("classifier-unavailable", "medium", questions[0].where), *unsupported]
        return self._judged(questions, scores)

    def _judged(self, questions: Sequence[_Question], scores: Sequence[float]) -> Sequence[ScanFinding]:
        """The findings of a classifier that has given each question that score."""
        found: list[ScanFinding] = []
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


def _classified(question: _Question, score: float) -> ScanFinding:
    return ScanFinding(
        name=CLASSIFIER,
        severity="high" if score >= CERTAIN else "medium",
        decision="ESCALATE",
        score=score,
        where=question.where,
        disguise=question.disguise,
    )


def _finding(name: str, severity: Severity, where: str) -> ScanFinding:
    return ScanFinding(
        name=name, severity=severity, decision="ESCALATE", score=CONFIDENCE[severity], where=where
    )
