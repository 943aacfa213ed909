"""Embeddings of facts: how they are stored, and which are nearest to that of a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

LEAST_SIMILARITY: Final = 0.0
_HIGHEST: Final = 127


def packed(vector: Sequence[float]) -> bytes:
    """The vector in one byte a component, which is enough to compare directions."""
    import numpy as np  # noqa: PLC0415 - most gateways have no vectors

    values = np.asarray(vector, dtype=np.float32)
    highest = float(np.abs(values).max()) if values.size else 0.0
    scaled = values * (_HIGHEST / highest) if highest else values
    return np.rint(scaled).astype(np.int8).tobytes()


def nearest(
    question: Sequence[float], rows: Sequence[tuple[int, bytes]], *, limit: int
) -> tuple[tuple[int, float], ...]:
    """The numbers of the packed vectors nearest to the question's, each with the cosine, best first. Those of
    another length are left out."""
    import numpy as np  # noqa: PLC0415 - most gateways have no vectors

    asked = np.asarray(question, dtype=np.float32)
    fitting = [(number, vector) for number, vector in rows if len(vector) == asked.size]
    length = float(np.linalg.norm(asked))
    if not fitting or not length:
        return ()
    joined = np.frombuffer(b"".join(vector for _, vector in fitting), dtype=np.int8)
    matrix = joined.reshape(len(fitting), asked.size).astype(np.float32)
    norms = np.linalg.norm(matrix, axis=1)
    # A product of the library for matrices takes all cores for some thousand vectors, and keeps them busy for
    # fifty milliseconds after half a millisecond of work.
    products = np.einsum("ij,j->i", matrix, asked)
    cosines = products / (np.where(norms == 0, 1, norms) * length)
    order = np.argsort(-cosines, kind="stable")[:limit]
    return tuple((fitting[at][0], float(cosines[at])) for at in order)
