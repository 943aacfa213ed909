"""Tier 1 of the shield: the findings of rules and of a classifier on an action or a result.

The interface for the gate:

    scanner = InjectionScanner(classifier)
    assessment = await scanner.assess(parts_of("http_request", payload))
    assessment = await scanner.assess((Part(kind="text", text=page, where="result of fetch_page"),))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from pipeline.shield.injection.findings import Assessment, Part


class Classifier(Protocol):
    """A statistical model that recognises injected instructions."""

    async def scores(self, texts: Sequence[str]) -> tuple[float, ...]:
        """For each text the probability, from 0 to 1, that it holds an injected instruction.

        Raises ClassifierUnavailable if it cannot answer, also in time.
        """
        ...


class InjectionScanner:
    """Examines parts. One instance serves every turn."""

    def __init__(self, classifier: Classifier | None = None) -> None:
        """`classifier` is the shipped linear model if it is None."""
        self._classifier = classifier

    async def assess(self, parts: Iterable[Part]) -> Assessment:
        """The findings in `parts` and their decision. Raises nothing: a classifier that cannot answer is a
        finding that escalates."""
        raise NotImplementedError
