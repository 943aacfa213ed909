"""Tier 2: another model judges a proposal.

Undecided escalates: a call that fails, ends too late or is not allowed any more today, and an answer without
the canary or in another form, leave the decision to a person. Not here: the words of the question and the
reading of the answer (`evaluator_prompt`).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from pipeline.domain.clock import Clock
from pipeline.domain.errors import ModelError, ModelTimeout, StorageError
from pipeline.domain.events import Decision
from pipeline.domain.frozen import dataclass
from pipeline.shield.evaluator_prompt import EvaluatorAnswer, instructions, question, read_answer
from pipeline.shield.levels import Labels
from pipeline.shield.ports import EvaluatorBudget, EvaluatorModel
from pipeline.shield.proposal import Proposal

_log = logging.getLogger(__name__)

FLAG: Final = "evaluator-{word}"
"""What an evaluation adds to the flags of a verdict."""
_CANARY_BYTES = 32
_WORDS: Final = {
    "too-long": "it is too long for the evaluator to be judged",
    "budget": "the evaluator has been asked as often today as shield.evaluator_per_day allows",
    "timeout": "the evaluator did not answer in time",
    "error": "the evaluator could not be asked",
    "no-canary": "the evaluator's answer does not have its canary, so it does not count",
    "unreadable": "the evaluator's answer cannot be read, so it does not count",
}
_DECIDED: Final = {
    "ALLOW": "the evaluator, another model, has allowed it",
    "BLOCK": "the evaluator, another model, has stopped it",
    "ESCALATE": "the evaluator, another model, wants a person to decide",
}
_FLAG_WORDS: Final = {"ALLOW": "allow", "BLOCK": "block", "ESCALATE": "ask"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What the evaluator says; ESCALATE where it says nothing that counts."""

    decision: Decision
    reasoning: str
    """In words for people."""
    flag: str
    """`evaluator-allow`, `-block`, `-ask`, or why its answer does not count."""
    counts: bool = True
    """Whether the evaluator has answered, in time, with its canary and in the right form."""
    detail: str = ""
    """What the model's client says about a call that failed."""


class Evaluator:
    """Asks the evaluator at most `per_day` times a day of UTC; 0 sets no limit. `redact` removes secrets from
    what it is shown."""

    def __init__(
        self,
        *,
        model: EvaluatorModel,
        budget: EvaluatorBudget,
        clock: Clock,
        timeout_s: float,
        per_day: int,
        redact: Callable[[str], str],
    ) -> None:
        self._model = model
        self._budget = budget
        self._clock = clock
        self._timeout_s = timeout_s
        self._per_day = per_day
        self._redact = redact

    async def evaluate(self, proposal: Proposal, labels: Labels, findings: Sequence[str]) -> Evaluation:
        """Judge it; `findings` are the names of what the scanner found. Raises StorageError."""
        try:
            asked = question(proposal, labels, findings, self._redact)
        except (ValueError, TypeError, RecursionError):
            asked = None
        if asked is None:
            return _undecided("too-long")
        if not await self._is_allowed():
            return _undecided("budget")
        canary = secrets.token_hex(_CANARY_BYTES)
        deadline = self._clock.timeout(self._timeout_s)
        try:
            async with deadline:
                said = await self._model.answer(instructions(canary), asked, proposal)
        except TimeoutError:
            return _undecided("timeout" if deadline.expired() else "error")
        except StorageError:
            raise
        except ModelTimeout:
            return _undecided("timeout")
        except ModelError as error:
            return _undecided("error", str(error))
        except Exception:  # noqa: BLE001 - a client may raise anything, and then a person decides
            _log.exception("the evaluator could not be asked")
            return _undecided("error")
        answer = read_answer(said, canary)
        return _decided(answer) if isinstance(answer, EvaluatorAnswer) else _undecided(answer)

    async def _is_allowed(self) -> bool:
        """Whether one more call is allowed today. It is counted before the call, durably: a process that dies
        during the call has used it."""
        if not self._per_day:
            return True
        today = datetime.fromtimestamp(self._clock.now(), UTC).date().isoformat()
        return await self._budget.take(today, self._per_day)


def _decided(answer: EvaluatorAnswer) -> Evaluation:
    words = _DECIDED[answer.verdict]
    if answer.reason:
        words += f": “{answer.reason}”"
    flag = FLAG.format(word=_FLAG_WORDS[answer.verdict])
    return Evaluation(decision=answer.verdict, reasoning=words, flag=flag)


def _undecided(why: str, detail: str = "") -> Evaluation:
    _log.warning("the evaluator gave no verdict", extra={"reason": detail or _WORDS[why]})
    flag = FLAG.format(word=why)
    return Evaluation(decision="ESCALATE", reasoning=_WORDS[why], flag=flag, counts=False, detail=detail)
