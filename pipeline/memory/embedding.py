"""The port of an embedding model, and a fake for tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import blake2b
from typing import Protocol

from pipeline.domain.errors import ModelUnavailable
from pipeline.memory.words import terms_of


class Embedder(Protocol):
    """Texts to vectors of one model. Where it fails, recall continues by words."""

    @property
    def model(self) -> str:
        """Names the model and its version: vectors of different names are never compared."""
        ...

    async def question(self, text: str) -> tuple[float, ...]:
        """The vector of something that is looked for. Raises ModelError."""
        ...

    async def passages(self, texts: Sequence[str]) -> tuple[tuple[float, ...], ...]:
        """The vectors of texts that are kept, in order. Raises ModelError."""
        ...

    async def close(self) -> None:
        """Release everything."""
        ...


class HashedEmbedder:
    """A fake embedder: a vector of hashed terms, so that texts with common words are near. `failing` makes
    every call fail."""

    def __init__(self, model: str = "hashed", *, size: int = 64) -> None:
        self.model = model
        self.failing = False
        self.texts: list[str] = []
        """What was embedded, in order."""
        self._size = size

    async def question(self, text: str) -> tuple[float, ...]:
        return (await self.passages([text]))[0]

    async def passages(self, texts: Sequence[str]) -> tuple[tuple[float, ...], ...]:
        if self.failing:
            raise ModelUnavailable("The embedding model does not answer")
        self.texts += texts
        return tuple(self._vector(text) for text in texts)

    async def close(self) -> None:
        pass

    def _vector(self, text: str) -> tuple[float, ...]:
        sums = [0.0] * self._size
        for term in terms_of(text):
            digest = blake2b(term.encode("utf-8", "replace"), digest_size=4).digest()
            sums[int.from_bytes(digest) % self._size] += 1.0
        length = math.sqrt(sum(one * one for one in sums)) or 1.0
        return tuple(one / length for one in sums)
