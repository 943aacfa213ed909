"""The node that keeps a conversation within the model's window: it replaces the beginning by a summary.

It starts at one level of use and reduces to a lower one, so that not every message pays for a summary. The
summarised turns stay in the log. If the model gives no summary, nothing is replaced: the prompt leaves out
what does not fit and says so, and the next try is delayed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from pipeline.domain.chat import estimate_tokens
from pipeline.domain.conversation import Conversation, PastTurn, Summary
from pipeline.domain.errors import ModelError
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import Next, NodeResult, State
from pipeline.history.cooldown import Cooldown
from pipeline.history.facts import keep_facts
from pipeline.history.stale_results import as_sent
from pipeline.history.summarization import MAX_SUMMARY_TOKENS, ask, usable
from pipeline.history.transcript import MAX_CHARS, transcript
from pipeline.history.view import HISTORY, opening, shown
from pipeline.runtime.context import RunContext
from pipeline.runtime.settings import PipelineSettings

_log = logging.getLogger(__name__)

COOL_DOWN_S = 300.0
"""Seconds between a failed try to summarise a session and the next one."""
_LEAST_BUDGET = 8
"""The history gets at least this fraction (1/8) of the window, however long the rest is."""
_PART_OF_TURN = 0.3
"""The share of a turn's time that a summary may take, so that there is time left to answer."""
_CHARS_PER_TOKEN = 3
"""As `estimate_tokens` counts English."""
_TASK_TOKENS = 300
"""The tokens of the instructions and the frames of both messages."""

_TASK = (
    "You keep the notes of a conversation between a user and an assistant. Write one summary of it in at most"
    " {words} words: what was asked and answered, decisions, names, numbers, dates, wishes, and what is still"
    " open. Keep what the earlier summary says as far as it still matters. Plain sentences in the language of"
    " the conversation, no headings, nothing else."
)
_EARLIER = "Earlier summary:\n{summary}\n\nWhat was said since:\n{lines}"

FixedTokens = Callable[[RunContext, State], int]
"""Counts the tokens of a prompt without its history: instructions, tools, the reserve for the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """How much of the window the history and the user's message may take, in tokens."""

    budget: int
    start: float
    """From this many on, the beginning is summarised."""
    keep: float
    """The most that is left afterwards, the summary included."""
    summary: int
    """The most of a summary."""


class Compaction:
    """The node. One serves every conversation."""

    def __init__(self, fixed_tokens: FixedTokens) -> None:
        self._fixed_tokens = fixed_tokens
        self._cooling = Cooldown(COOL_DOWN_S)

    async def __call__(self, state: State, context: RunContext) -> NodeResult:
        """Summarise the beginning of a conversation that is long enough. Updates `history` then."""
        said = await context.history.conversation()
        conversation, levels, old = _due(said, context, state, self._fixed_tokens(context, state))
        if not old or not self._cooling.is_over(context.scope.session_id, context.clock):
            return NodeResult()
        try:
            summary = await _summed_up(conversation.summary, old, levels, context)
        except ModelError as error:
            self._cooling.begin(context.scope.session_id, context.clock)
            _log.warning("the conversation could not be summed up", extra={"reason": str(error)})
            return NodeResult()
        await context.history.summarise(summary)
        return NodeResult(update={HISTORY: {"text": summary.text, "upto": summary.upto}}, decision=Next())

    async def before_reading(self, state: State, context: RunContext) -> None:
        """The same for a node that is about to use the conversation, in a graph where no node has done it."""
        said = await context.history.conversation()
        summary = 0 if said.summary is None else estimate_tokens(said.summary.text)
        newest = estimate_tokens(context.text) + context.file_tokens
        if may_be_time(said.tokens + summary + newest, context.settings):
            await self(state, context)


def may_be_time(tokens: int, settings: PipelineSettings) -> bool:
    """Whether a history and a message of `tokens` may be long enough to summarise; False is certain for any
    rest of the prompt."""
    least = min(settings.token_ceiling, settings.context_tokens // _LEAST_BUDGET)
    return tokens >= least * settings.compact_at


def is_time(said: Conversation, context: RunContext, state: State, fixed_tokens: int) -> bool:
    """Whether `said` has turns to summarise, for a prompt of `fixed_tokens` without its history."""
    return bool(_due(said, context, state, fixed_tokens)[2])


def levels_of(context: RunContext, fixed_tokens: int) -> Levels:
    """The levels for a turn whose prompt takes `fixed_tokens` without its history."""
    settings = context.settings
    window = settings.context_tokens
    budget = min(settings.token_ceiling, max(window - fixed_tokens, window // _LEAST_BUDGET))
    keep = budget * settings.compact_to
    return Levels(
        budget=budget,
        start=budget * settings.compact_at,
        keep=keep,
        summary=min(MAX_SUMMARY_TOKENS, int(keep / 3)),
    )


def beginning(
    conversation: Conversation, newest_tokens: int, levels: Levels, stale_after: int
) -> tuple[PastTurn, ...]:
    """The turns to summarise before a message of `newest_tokens`; none below the level, or where a summary
    would save nothing.

    Whole turns, oldest first. The newest turn is among them only where it does not fit into the window at
    all. The time it takes grows with the turns that fit, not with all turns.
    """
    turns = conversation.turns
    used = newest_tokens + sum(message.tokens for message in opening(conversation.summary, left_out=False))
    missing = levels.start - used
    # In brief, a turn has fewer tokens: most conversations need no look at each turn.
    if not turns or conversation.tokens < missing or not _reaches(turns, missing, stale_after):
        return ()
    framed = sum(message.tokens for message in opening(Summary(text="", upto=0), left_out=False))
    room = levels.keep - newest_tokens - framed - levels.summary
    first = len(turns)
    for index in range(len(turns) - 1, -1, -1):
        room -= as_sent(turns, index, stale_after).tokens
        if room < 0:
            break
        first = index
    if first == len(turns) and turns[-1].tokens <= levels.budget - newest_tokens - framed - levels.summary:
        first -= 1
        if sum(as_sent(turns, index, stale_after).tokens for index in range(first)) <= levels.summary:
            return ()
    return turns[:first]


def _due(
    said: Conversation, context: RunContext, state: State, fixed_tokens: int
) -> tuple[Conversation, Levels, tuple[PastTurn, ...]]:
    """The conversation as the run sees it, its levels, and the turns to summarise now."""
    conversation = shown(said, state)
    levels = levels_of(context, fixed_tokens)
    newest = estimate_tokens(context.text) + context.file_tokens
    return conversation, levels, beginning(conversation, newest, levels, context.settings.stale_after_turns)


def _reaches(turns: Sequence[PastTurn], tokens: float, stale_after: int) -> bool:
    for index in range(len(turns) - 1, -1, -1):
        if tokens <= 0:
            break
        tokens -= as_sent(turns, index, stale_after).tokens
    return tokens <= 0


async def _summed_up(
    earlier: Summary | None, old: Sequence[PastTurn], levels: Levels, context: RunContext
) -> Summary:
    settings = context.settings
    lines = _lines(
        old, max(settings.context_tokens // 4, settings.context_tokens - _TASK_TOKENS - 2 * levels.summary)
    )
    await keep_facts(lines, context)
    material = lines if earlier is None else _EARLIER.format(summary=earlier.text, lines=lines)
    said = await ask(
        context.llm,
        _TASK.format(words=levels.summary // 2),
        material,
        max_tokens=levels.summary,
        timeout_s=min(settings.llm_timeout_s, settings.turn_timeout_s * _PART_OF_TURN),
        clock=context.clock,
        redactor=context.redactor,
    )
    await context.budgets.spent(context.scope, tokens=said.tokens, cost=said.cost)
    return Summary(text=usable(said.text, levels.summary), upto=old[-1].id)


def _lines(old: Sequence[PastTurn], max_tokens: int) -> str:
    """The transcript, cut to fit the model's window in any language."""
    chars = min(MAX_CHARS, max_tokens * _CHARS_PER_TOKEN)
    lines = transcript(old, chars)
    tokens = estimate_tokens(lines)
    return lines if tokens <= max_tokens else transcript(old, chars * max_tokens // tokens)
