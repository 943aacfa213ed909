"""The operator's classifier in the place of the linear model: in a separate thread, with a deadline.

It loads the libraries only when a gateway has one. A call that fails, takes too long or finds the texts too
long is ClassifierUnavailable, which the scanner reports as a finding that escalates.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from pipeline.domain.clock import Clock
from pipeline.shield.injection.scanner import ClassifierUnavailable

_log = logging.getLogger(__name__)


class TextModel(Protocol):
    """A model that blocks while it scores."""

    def scores(self, texts: Sequence[str]) -> tuple[float, ...]:
        """For each text the probability of an attack, from 0 to 1. Raises any exception."""
        ...

    def stop(self) -> None:
        """End the current run, which then raises. Called from another thread."""
        ...


class OnnxClassifier:
    """Implements Classifier. Calls wait for one another, each at most `timeout_s` seconds."""

    def __init__(self, model: TextModel, *, threshold: float, timeout_s: float, clock: Clock) -> None:
        self.threshold = threshold
        self._model = model
        self._timeout_s = timeout_s
        self._clock = clock
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="classifier")

    async def scores(self, texts: Sequence[str]) -> tuple[float, ...]:
        """See `Classifier.scores`."""
        deadline = self._clock.timeout(self._timeout_s)
        work = self._thread.submit(self._model.scores, tuple(texts))
        try:
            async with deadline:
                found = await asyncio.wrap_future(work)
        except TimeoutError:
            raise self._unavailable("it did not answer in time") from None
        except Exception as error:
            raise self._unavailable(" ".join(str(error).split())[:300] or type(error).__name__) from error
        finally:
            # One that has not begun is not begun any more; one that runs is ended.
            if not work.done() and not work.cancel():
                self._model.stop()
        if len(found) != len(texts) or not all(0 <= score <= 1 for score in found):
            raise self._unavailable("its scores are no probabilities")
        return found

    def _unavailable(self, why: str) -> ClassifierUnavailable:
        _log.warning("the shield's classifier gave no scores", extra={"reason": why})
        return ClassifierUnavailable(f"the classifier of shield.classifier gave no scores: {why}")


def load_classifier(folder: Path, *, threshold: float, timeout_s: float, clock: Clock) -> OnnxClassifier:
    """The classifier in `folder`. Takes seconds for a large model. Raises ConfigurationError, which names the
    file and what is wrong with it."""
    from gateway.shield.onnx_model import OnnxModel  # noqa: PLC0415 - libraries that most gateways need not load

    return OnnxClassifier(OnnxModel(folder), threshold=threshold, timeout_s=timeout_s, clock=clock)
