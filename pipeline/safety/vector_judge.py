"""Judge by sentence vectors the messages in which the rules find nothing clear. It can only raise the level.

A vector knows that two sentences mean alike where no word is the same, which the linear model does not. The
person's messages in the scope of the rules are embedded, each once. A model that fails or is late leaves the
verdict of the rules; what fails is logged, without words.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from typing import Final, Protocol

from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ModelUnavailable
from pipeline.safety.assessment import CLEAR, NONE, CrisisAssessment
from pipeline.safety.danger_model import Scores, shipped_concepts, shipped_model
from pipeline.safety.ladder import WINDOW, Entry, left_open
from pipeline.safety.vector_head import VectorHead, level_by, shipped_head

_log = logging.getLogger(__name__)

LIMIT_S: Final = 3.0
"""Seconds for the vectors of a message, with the start of the model's process."""
_FEWEST_WORDS: Final = 3
"""Words without which a vector says nothing."""
_KNOWN_TEXTS: Final = 2_048
_CODES: Final = ("", "", "vectors.clear", "vectors.imminent")
"""The reason of a verdict, by level."""


class Embeds(Protocol):
    """The embedding model."""

    @property
    def model(self) -> str:
        """Its name and version."""
        ...

    async def question(self, text: str) -> tuple[float, ...]:
        """The vector of a text. Raises ModelError."""
        ...


class VectorJudge:
    """Judges with one embedding model. One instance serves every agent."""

    def __init__(
        self, embedder: Embeds, clock: Clock, *, head: VectorHead | None = None, limit_s: float = LIMIT_S
    ) -> None:
        """`head`: None for that of the package. Raises BadWeights for a damaged one."""
        self._embedder = embedder
        self._clock = clock
        self._head = head or shipped_head()
        self._limit_s = limit_s
        self._known: BoundedDict[bytes, Scores] = BoundedDict(_KNOWN_TEXTS)
        """What the head said of the last texts, by hashes of these."""

    async def assess(self, text: str, history: Sequence[Entry]) -> CrisisAssessment | None:
        """The verdict on `text` after `history`: level 2 or 3, or None where it finds nothing clear or no
        vector comes in time."""
        try:
            async with self._clock.timeout(self._limit_s):
                return await self._assessed(text, history)
        except Exception as error:  # noqa: BLE001 - whatever fails, the rules have decided
            _log.warning("the crisis vectors gave no verdict", extra={"reason": type(error).__name__})
            return None

    async def _assessed(self, text: str, history: Sequence[Entry]) -> CrisisAssessment | None:
        own, words = await self._judged(text)
        level, earlier = own, ""
        for entry in reversed(history[-WINDOW:]):
            if entry.said_by == "person" and level < CLEAR:
                level, words = await self._judged(entry.text)
                earlier = " earlier"
        if level < CLEAR:
            return None
        return CrisisAssessment(
            level=level,
            confidence="medium",
            reason=f"{_CODES[level]}{earlier}",
            language=shipped_concepts().language_of(words),
        )

    async def _judged(self, text: str) -> tuple[int, Sequence[str]]:
        """The level of a message by itself, and its words."""
        text, words = left_open(text)
        if sum(word.isalnum() for word in words) < _FEWEST_WORDS:
            return NONE, words
        return level_by(await self._said(text), shipped_model().score_words(words)), words

    async def _said(self, text: str) -> Scores:
        if self._embedder.model != self._head.model:
            raise ModelUnavailable(f"{self._embedder.model} is not {self._head.model}")
        key = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
        if (known := self._known.get(key)) is None:
            known = self._known[key] = self._head.logits(await self._embedder.question(text))
        return known
