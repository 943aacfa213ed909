"""Embed facts that have no vector of the configured model, as a durable job.

The store knows which those are: new ones, and all after the model was changed. So nothing is lost by a crash,
and a repeated job does nothing twice.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from gateway.scheduling.jobs import JobKind, JobRunner
from gateway.storage.jobs import Job, NewJob
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.memory.embedding import Embedder
from pipeline.memory.ports import FactVector, MemoryBook
from pipeline.memory.recall import fact_text

_log = logging.getLogger(__name__)

KIND: Final = "embed memories"
_AT_ONCE = 16


class EmbeddingJob:
    """Register `kind` with the job runner, and run `run` as a supervised task."""

    def __init__(self, book: MemoryBook, embedder: Embedder, jobs: JobRunner, clock: Clock) -> None:
        self._book = book
        self._embedder = embedder
        self._jobs = jobs
        self._clock = clock
        self._added = asyncio.Event()
        self._added.set()
        book.watch(self._added.set)

    @property
    def kind(self) -> JobKind:
        return JobKind(name=KIND, run=self._embed)

    async def run(self) -> None:
        """Add a job at the start and whenever facts were added, until cancelled."""
        while True:
            await self._added.wait()
            self._added.clear()
            now = self._clock.now()
            try:
                # Another key each time: a job that runs now may have read the store already.
                await self._jobs.add(NewJob(kind=KIND, key=f"{self._embedder.model} {now:.3f}", due=now))
            except StorageError as error:
                _log.warning("facts wait for their vectors", extra={"reason": str(error)})

    async def _embed(self, _job: Job) -> None:
        model, embedded = self._embedder.model, 0
        while waiting := await self._book.without_vector(model, limit=_AT_ONCE):
            vectors = await self._embedder.passages([fact_text(fact) for _, fact in waiting])
            rows = [
                FactVector(owner=owner, fact_id=fact.id, vector=vector)
                for (owner, fact), vector in zip(waiting, vectors, strict=True)
            ]
            await self._book.write_vectors(model, rows)
            embedded += len(rows)
        if embedded:
            _log.info("facts were embedded", extra={"facts": embedded, "model": model})
