"""The failure of a step, with words for the person who waits for an answer."""

from __future__ import annotations

from typing import ClassVar

from pipeline.domain.errors import TurnFailed


class StepFailed(TurnFailed):
    """A step did not do its work. The node's retry policy and its `on_failure` edges apply."""

    code: ClassVar[str] = "step_failed"
    permanent: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__(self.code, message)


class ConditionFailed(StepFailed):
    """A condition could not be evaluated; a further attempt would find the same values."""

    permanent: ClassVar[bool] = True
