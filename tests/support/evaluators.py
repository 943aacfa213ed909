"""The answers of a model that judges actions, and an evaluator around a scripted one."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from gateway.storage.memory.shield import MemoryEvaluatorCalls
from pipeline.domain.clock import Clock, ManualClock
from pipeline.shield.evaluator import Evaluator
from pipeline.shield.proposal import Proposal
from tests.support.openai_server import Behaviour

_CANARY = re.compile(r"\b[0-9a-f]{64}\b")


def canary_of(instructions: str) -> str:
    """The canary of a call, which is in its instructions once."""
    (canary,) = _CANARY.findall(instructions)
    return str(canary)


def judged(canary: str, verdict: str = "ALLOW", reason: str = "It is a small file.") -> str:
    """An answer in the form that counts."""
    return json.dumps({"canary": canary, "verdict": verdict, "reason": reason})


def judging(verdict: str = "ALLOW", reason: str = "It is a small file.") -> Callable[[str], str]:
    """Answers with the canary of its instructions and always the same verdict."""
    return lambda instructions: judged(canary_of(instructions), verdict, reason)


def evaluating(verdict: str = "ALLOW", reason: str = "Small.") -> Callable[[Mapping[str, Any]], Behaviour]:
    """The brain of a fake endpoint that is the evaluator and answers always the same verdict."""
    says = judging(verdict, reason)
    return lambda body: Behaviour(chunks=(says(body["messages"][0]["content"]),))


class ScriptedEvaluator:
    """An `EvaluatorModel` that answers what `says` makes of the instructions; `before` is awaited first."""

    def __init__(
        self, says: Callable[[str], str] | None = None, before: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self.says = says or judging()
        self.before = before
        self.calls: list[tuple[str, str]] = []
        """The instructions and the question of each call."""

    async def answer(self, instructions: str, question: str, proposal: Proposal) -> str:
        del proposal
        self.calls.append((instructions, question))
        if self.before is not None:
            await self.before()
        return self.says(instructions)

    @property
    def shown(self) -> dict[str, Any]:
        """The proposal in the last question."""
        lines = self.calls[-1][1].splitlines()
        assert (lines[0], lines[2]) == ("<proposal>", "</proposal>")
        plain: dict[str, Any] = json.loads(lines[1])
        return plain


def evaluator(
    model: ScriptedEvaluator | None = None,
    *,
    clock: Clock | None = None,
    per_day: int = 100,
    calls: MemoryEvaluatorCalls | None = None,
    redact: Callable[[str], str] = str,
) -> Evaluator:
    """An evaluator with a deadline of 30 seconds."""
    return Evaluator(
        model=model or ScriptedEvaluator(),
        budget=calls or MemoryEvaluatorCalls(_always_open),
        clock=clock or ManualClock(),
        timeout_s=30.0,
        per_day=per_day,
        redact=redact,
    )


def _always_open() -> None:
    """The calls are never closed."""
