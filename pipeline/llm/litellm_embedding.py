"""Embeddings by any provider that litellm knows. The library is loaded as for answers (`litellm_client`)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from pipeline.domain.errors import ModelUnavailable
from pipeline.llm.failures import Target, timed_out, translate
from pipeline.llm.litellm_client import load_litellm

_TIMEOUT_S: Final = 20.0
_TEXT_CHARS: Final = 2_000
_AT_ONCE: Final = 64


class LitellmEmbedder:
    """Vectors of `model`, litellm's `provider/name`, for questions and passages alike. `api_base` replaces
    the provider's address; `api_key` is sent to it and never shown."""

    def __init__(
        self,
        *,
        model: str,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self._model = model
        self._target = Target(model=model, api_base=api_base, secret=api_key)
        self._timeout_s = timeout_s

    @property
    def model(self) -> str:
        """The model's name, which is that of its vectors."""
        return self._model

    async def question(self, text: str) -> tuple[float, ...]:
        """The vector of something that is looked for. Raises ModelError."""
        return (await self.passages([text]))[0]

    async def passages(self, texts: Sequence[str]) -> tuple[tuple[float, ...], ...]:
        """The vectors of texts that are kept, in order. Raises ModelError."""
        found: list[tuple[float, ...]] = []
        for begin in range(0, len(texts), _AT_ONCE):
            found += await self._embed([text[:_TEXT_CHARS] for text in texts[begin : begin + _AT_ONCE]])
        return tuple(found)

    async def close(self) -> None:
        """Nothing: litellm's connections are shared with the clients that answer."""

    async def _embed(self, texts: list[str]) -> list[tuple[float, ...]]:
        try:
            async with asyncio.timeout(self._timeout_s):
                litellm = await load_litellm()
                answer = await litellm.aembedding(
                    model=self._model,
                    input=texts,
                    api_base=self._target.api_base,
                    # A server of the operator's needs no key, but the library wants one.
                    api_key=self._target.secret or ("none" if self._target.api_base else None),
                    timeout=self._timeout_s,
                    encoding_format="float",
                    max_retries=0,
                )
        except TimeoutError:
            raise timed_out(self._timeout_s, self._target) from None
        except Exception as error:  # the library's errors have no common class
            raise translate(error, self._target) from error
        vectors = [_floats(row["embedding"]) for row in sorted(answer.data, key=lambda row: row["index"])]
        if len(vectors) != len(texts):
            raise ModelUnavailable(
                f"The model {self._model!r} returned another number of vectors than of texts"
            )
        return vectors


def _floats(values: Any) -> tuple[float, ...]:
    return tuple(float(one) for one in values)
