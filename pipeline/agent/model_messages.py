"""Build the messages of a model call: system prompt, fitted history, the user's message exactly once, and
this run's own exchange."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from operator import attrgetter

from pipeline.agent.pictures import with_files
from pipeline.agent.recalled import recalled
from pipeline.agent.results import fitted
from pipeline.agent.room_talk import room_block
from pipeline.agent.system_prompt import RULE, system_prompt
from pipeline.domain.chat import ChatMessage, ToolDefinition, message_from_plain
from pipeline.domain.conversation import Conversation, PastTurn
from pipeline.domain.rooms import said_by
from pipeline.graph.definition.decisions import State
from pipeline.history.stale_results import brief, sent
from pipeline.history.view import opening, shown
from pipeline.intake.cleaning import clean_text
from pipeline.runtime.context import RunContext

EXCHANGE = "exchange"
"""The state's key for the messages of the model and its tools in this run, as plain data."""
LOADED = "loaded"
"""The state's key for the tool groups and skills that are loaded for this message."""
_TOKENS = attrgetter("tokens")


def exchanged(state: State) -> tuple[ChatMessage, ...]:
    """The messages of the model and its tools in a run's state."""
    return tuple([message_from_plain(plain) for plain in state.get(EXCHANGE, ())])


async def build_messages(
    context: RunContext, state: State, tools: Sequence[ToolDefinition] = (), *, system: str = ""
) -> tuple[ChatMessage, ...]:
    """The messages of one model call, system message first: `system`, or else the agent's own. Reads the
    history.

    The history gets the room that the other messages, `tools` and the answer leave in the model's window.
    This run's own tool results are shortened before the history is fitted.
    """
    settings = context.settings
    said_before = await context.history.conversation()
    first = ChatMessage(role="system", content=system) if system else _system(context, state, tools)
    if context.workflow is not None and not system and (known := await recalled(context)):
        first = ChatMessage(role="system", content=f"{first.content}{RULE}{known}")
    talk = "" if context.scope.private else room_block(await context.history.room(), settings.context_tokens)
    words = clean_text(said_by(context.text, context.by))
    said = ChatMessage(role="user", content=f"{talk}{words}")
    if context.files:
        said = with_files(said, context)
    conversation = shown(said_before, state)
    # Reserves the notice's tokens: whether it is needed is known only when the turns have been fitted.
    before = opening(conversation.summary, left_out=True)
    room = settings.context_tokens - _fixed(context, first, tools)
    room -= sum(map(_TOKENS, (*before, said)))
    exchange = fitted(exchanged(state), room)
    room -= sum(map(_TOKENS, exchange))
    kept = _fitting(conversation, min(settings.token_ceiling, room), settings.stale_after_turns)
    before = opening(conversation.summary, left_out=len(kept) < len(conversation.turns))
    # A question and its answer in each turn: nothing is shortened and nothing repeats.
    history = conversation.messages if kept is conversation.turns else sent(kept)
    return (first, *before, *history, said, *exchange)


def fixed_tokens(context: RunContext, state: State) -> int:
    """Tokens of everything in a prompt that is neither history nor the newest message."""
    tools = context.tools.offered((), context.scope)
    return _fixed(context, _system(context, state, tools), tools)


def _fixed(context: RunContext, system: ChatMessage, tools: Sequence[ToolDefinition]) -> int:
    of_tools: int = sum(map(_TOKENS, tools))
    return context.settings.max_answer_tokens + system.tokens + of_tools


def _system(context: RunContext, state: State, tools: Sequence[ToolDefinition]) -> ChatMessage:
    skills = state.get(LOADED, {}).get("skills", ())
    return _of_system(system_prompt(context, state, skills, tools=bool(tools)))


@functools.lru_cache(maxsize=128)
def _of_system(prompt: str) -> ChatMessage:
    """The message of a prompt, with its tokens. Cached, as the prompt is."""
    return ChatMessage(role="system", content=prompt)


def _fitting(conversation: Conversation, room: int, stale_after: int) -> tuple[PastTurn, ...]:
    """The newest turns without a gap that fit into `room` tokens; turns older than `stale_after` in brief.
    The conversation's own tuple if all fit and each is a question and its answer."""
    if conversation.tokens <= room and conversation.size == 2 * len(conversation.turns):
        return conversation.turns
    kept: list[PastTurn] = []
    for age, turn in enumerate(reversed(conversation.turns)):
        as_sent = turn if age < stale_after else brief(turn)
        room -= as_sent.tokens
        if room < 0:
            break
        kept.append(as_sent)
    return tuple(reversed(kept))
