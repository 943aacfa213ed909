"""Resume the recorded run of a turn: after a crash, or with a person's answer to its question."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from pipeline.agent.model_messages import exchanged
from pipeline.agent.unfinished import has_acted
from pipeline.domain.errors import TurnFailed
from pipeline.domain.messages import ApprovalReply
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run import records as run_records
from pipeline.graph.run.outcome import Answer, RunOutcome
from pipeline.graph.run.records import RawRecord
from pipeline.runtime.context import RunContext
from pipeline.runtime.safe_log import SafeRunLog
from pipeline.turn import Turn
from pipeline.turn_reads import has_used_history

_log = logging.getLogger(__name__)

_OUTDATED_WORDS = (
    "The assistant has changed since it asked this and cannot continue. Please send your message again."
)
_HALF_DONE_WORDS = (
    "The assistant has changed since it began to work on this message, and had already begun an action. It"
    " does not begin again, because the action could be done twice. Please check what was done before you"
    " send the message again."
)
_OVER_WORDS = "This question is no longer open: the assistant has ended without your answer."


async def resumed(
    executor: Executor[Any],
    turn: Turn,
    context: RunContext,
    later: frozenset[str] = frozenset(),
    unrecorded: frozenset[str] = frozenset(),
) -> RunOutcome | None:
    """The outcome of the turn's recorded run, without the nodes that are left for `later`, with records
    without the keys `unrecorded`; None if there is none, or one that has to begin again. Raises TurnFailed
    if it cannot be resumed and must not begin again."""
    records = await turn.journal.recorded_run()
    answers = isinstance(turn.message, ApprovalReply)
    if not records and not answers:
        return None
    try:
        return await _resume(executor, turn, context, records, later, unrecorded)
    except (run_records.GraphChanged, run_records.RunUnreadable, run_records.RunEnded) as error:
        _log.warning("a run cannot be resumed", extra={"code": error.code, "reason": str(error)})
        if answers:
            # A new run would repeat what the old one did before it asked.
            words = _OVER_WORDS if isinstance(error, run_records.RunEnded) else _OUTDATED_WORDS
            raise TurnFailed(error.code, words) from error
        if has_acted(records):
            raise TurnFailed(error.code, _HALF_DONE_WORDS) from error
        return None


async def _resume(
    executor: Executor[Any],
    turn: Turn,
    context: RunContext,
    records: Sequence[RawRecord],
    later: frozenset[str],
    unrecorded: frozenset[str],
) -> RunOutcome:
    # A later step need not see the results of those that read text from elsewhere.
    state = executor.state_of(records)
    context.scope.foreign.read(exchanged(state))
    if has_used_history(state):
        # Its foreign words may be in what the run has written so far.
        await context.history.conversation()
    turn.began_with = run_records.head_of(records)["inputs"]
    log = SafeRunLog(turn.journal.run_log(), turn.redactor, unrecorded)
    listener, message = turn.on_graph_event, turn.message
    if isinstance(message, ApprovalReply) and not message.expired:
        answer = Answer(
            gate=message.interaction_id,
            choice=message.choice,
            note=message.note,
            by=message.by or message.author.id,
        )
        try:
            return await executor.resume(
                records,
                context,
                answers=(answer,),
                later=later,
                listener=listener,
                log=log,
                control=turn.control,
            )
        except run_records.GateRefused as refused:
            if refused.status not in ("already_answered", "expired"):
                raise
            # An earlier attempt recorded the answer, or it expired while it waited.
    return await executor.resume(
        records, context, later=later, listener=listener, log=log, control=turn.control
    )
