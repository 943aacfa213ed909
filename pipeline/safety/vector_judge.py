"""Judge by sentence vectors, with the linear model, the messages of which the patterns say nothing clear.

A vector knows that two sentences mean alike where no word is the same, which the linear model does not. What
a pattern finds can only be raised; what the linear model alone finds counts if the vectors do not contradict
it. The person's messages in the scope of the rules are embedded, each once. A model that fails or is late
leaves the verdict of the rules; what fails is logged, without words.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ModelUnavailable
from pipeline.safety.assessment import CLEAR, IMMINENT, UNCLEAR, CrisisAssessment
from pipeline.safety.danger_model import Scores, shipped_concepts, shipped_model
from pipeline.safety.ladder import WINDOW, EarlierEntry, left_open
from pipeline.safety.vector_head import (
    SURE_AT,
    JoinedScores,
    VectorHead,
    joined,
    shipped_head,
)

_log = logging.getLogger(__name__)

LIMIT_S: Final = 3.0
"""Seconds for the vectors of a message, with the start of the model's process."""
_FEWEST_WORDS: Final = 3
"""Words without which a vector says nothing."""
_KNOWN_TEXTS: Final = 2_048
SAMPLE: Final = "Which bread goes well with soup?"
"""A text that says nothing, to start the model with."""
_EARLIER: Final = " earlier"
"""What follows the reason that an earlier message gave."""
_OF_MODEL: Final = "model."
"""What the reason of a verdict of the linear model begins with."""
_CODES: Final = ("", "vectors.doubted", "vectors.clear", "vectors.imminent")
"""The reason of a verdict, by level."""
_DOUBTED: Final = CrisisAssessment(level=UNCLEAR, confidence="low", reason=_CODES[UNCLEAR])
"""In place of what the linear model alone has found, where the vectors find nothing like it."""


class _Judged(NamedTuple):
    """What both models say of a text, and its words."""

    said: JoinedScores
    words: Sequence[str]

    def raised(self, level: int, when: str = "") -> CrisisAssessment:
        """The verdict that the text is of `level`."""
        return CrisisAssessment(
            level=level,
            confidence="medium",
            reason=f"{_CODES[level]}{when}",
            language=shipped_concepts().language_of(self.words),
        )


class Embeds(Protocol):
    """The embedding model."""

    @property
    def model(self) -> str:
        """Its name and version."""
        ...

    async def question(self, text: str) -> tuple[float, ...]:
        """The vector of a text. Raises ModelError."""
        ...

    async def close(self) -> None:
        """End it."""
        ...


class VectorJudge:
    """Judges with one embedding model, which ends with it. One instance serves every agent."""

    def __init__(
        self, embedder: Embeds, clock: Clock, *, head: VectorHead | None = None, limit_s: float = LIMIT_S
    ) -> None:
        """`head`: None for that of the package. Raises BadCrisisWeights for a damaged one."""
        self._embedder = embedder
        self._clock = clock
        self._head = head or shipped_head()
        self._limit_s = limit_s
        self._known: BoundedDict[bytes, Scores] = BoundedDict(_KNOWN_TEXTS)
        """What the head said of the last texts, by hashes of these."""

    async def assess(
        self, text: str, history: Sequence[EarlierEntry], found: CrisisAssessment
    ) -> CrisisAssessment:
        """The verdict on `text` after `history`, of which the rules say `found`; that, where no vector comes
        in time."""
        try:
            async with self._clock.timeout(self._limit_s):
                return await self._assessed(text, history, found)
        except Exception as error:  # noqa: BLE001 - whatever fails, the rules have decided
            _log.warning("the crisis vectors gave no verdict", extra={"reason": type(error).__name__})
            return found

    async def warm_up(self) -> None:
        """Start the embedding model, as the first message that needs it waits for no more than the limit.
        What fails is logged."""
        try:
            await self._said(SAMPLE)
        except Exception as error:  # noqa: BLE001 - whatever fails, the rules decide
            _log.warning("the crisis vectors do not start", extra={"reason": str(error)})

    async def close(self) -> None:
        """End the embedding model."""
        await self._embedder.close()

    async def _assessed(
        self, text: str, history: Sequence[EarlierEntry], found: CrisisAssessment
    ) -> CrisisAssessment:
        own = await self._judged(text)
        earlier = [entry.text for entry in reversed(history[-WINDOW:]) if entry.said_by == "person"]
        if found.level >= CLEAR:
            if found.reason.startswith(_OF_MODEL) and await self._is_doubted(own, earlier):
                return _DOUBTED
            return _surer(own, found)
        if own is not None and own.said.level >= CLEAR:
            return own.raised(own.said.level)
        for words in earlier:
            one = await self._judged(words)
            if one is not None and one.said.level >= CLEAR:
                return one.raised(one.said.level, _EARLIER)
        return found

    async def _is_doubted(self, own: _Judged | None, earlier: Sequence[str]) -> bool:
        """Whether no message that can be judged may be clear; not if none can be judged."""
        last = own
        for words in earlier:
            if last is not None and not last.said.is_doubted:
                return False
            last = await self._judged(words) or last
        return last is not None and last.said.is_doubted

    async def _judged(self, text: str) -> _Judged | None:
        """What is said of a message by itself; None for one with too few words."""
        text, words = left_open(text)
        if sum(word.isalnum() for word in words) < _FEWEST_WORDS:
            return None
        return _Judged(joined(await self._said(text), shipped_model().score_words(words)), words)

    async def _said(self, text: str) -> Scores:
        if self._embedder.model != self._head.model:
            raise ModelUnavailable(f"{self._embedder.model} is not {self._head.model}")
        key = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
        if (known := self._known.get(key)) is None:
            known = self._known[key] = self._head.logits(await self._embedder.question(text))
        return known


def _surer(own: _Judged | None, found: CrisisAssessment) -> CrisisAssessment:
    """What was found clear, as imminent if the message by itself is."""
    is_sure = own is not None and own.said.imminent >= SURE_AT and found.level < IMMINENT
    return own.raised(IMMINENT) if own is not None and is_sure else found
