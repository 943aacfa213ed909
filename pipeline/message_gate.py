"""A message gate: a graph that sees every accepted message before anything else decides about it.

A run that ends with an answer takes the message over; one that ends without an answer passes it. Everything
else is an error, and the message is not passed. The run is not recorded: after a restart the gate sees the
message again, unless the agent's own run has begun.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from pipeline.agent.llm_decider import LlmDecider
from pipeline.agent.task import between_tasks
from pipeline.agent.task_texts import TASKS
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.execution.executor import Executor
from pipeline.intake.cleaning import clean_text
from pipeline.nodes.flow import asks_a_person
from pipeline.nodes.intake_steps import MESSAGE
from pipeline.runtime.before_message import MessageKind, not_checked
from pipeline.runtime.context import RunContext, ignore_text

KIND: Final = "kind"
"""The state's key for the kind of the message: text, speech or command."""


class MessageGate:
    """Runs one graph as a `BeforeMessage`, for all threads."""

    def __init__(self, graph: GraphSpec[RunContext], *, clock: Clock) -> None:
        self._executor = Executor(
            graph, clock=clock, decider=LlmDecider(), phase=between_tasks, phase_key=TASKS
        )

    async def reply(self, kind: MessageKind, context: RunContext) -> str:
        """See `BeforeMessage.reply`. Raises TurnFailed and StorageError."""
        # The message is judged here, not answered: nothing is refused or confirmed by the intake, and
        # nothing is shown before the gate has decided.
        settings = replace(
            context.settings, spam="answer", too_fast="answer", confirm_below=0.0, choose_from_s=0.0
        )
        context = replace(
            context, settings=settings, on_text=ignore_text, on_earlier=ignore_text, fails_closed=True
        )
        try:
            inputs = {MESSAGE: clean_text(context.text), KIND: kind}
            outcome = await self._executor.run(inputs, context)
            outcome.raise_for_failure()
        except StorageError:
            raise
        except Exception as error:
            raise not_checked(error) from error
        if (
            outcome.status != "completed"
            or outcome.gates
            or outcome.stop_reason in ("max_loops", "max_steps")
        ):
            raise not_checked(RuntimeError(f"the run ended as {outcome.status}, {outcome.stop_reason}"))
        answer = outcome.state.get("agent", {}).get("answer", "")
        if not isinstance(answer, str):
            raise not_checked(TypeError("the answer is not a text"))
        # A step that failed, or a condition that could not be evaluated, is no check that was passed.
        unchecked = [str(one.message) for one in outcome.failures]
        unchecked += [problem for node in outcome.nodes.values() for problem in node.edge_errors]
        if unchecked and not answer:
            raise not_checked(RuntimeError("; ".join(unchecked)))
        return answer


def gate_mistakes(graph: GraphSpec[Any]) -> tuple[str, ...]:
    """Why a graph cannot be a gate, as sentences; empty if it can."""
    return tuple(_mistakes(graph))


def _mistakes(graph: GraphSpec[Any]) -> Iterator[str]:
    if graph.keep:
        yield f"graph {graph.name}: keeps state between runs, which a gate cannot"
    if graph.pause_nodes or asks_a_person(graph):
        yield f"graph {graph.name}: asks a person, which a gate cannot, as it decides before anything else"
