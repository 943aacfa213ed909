"""The node that passes the agent's tool calls to the gate, in order, and returns the results together.

The gate executes or refuses each call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from pipeline.agent.loops import DOOM_WORDS, END_AT, REFUSE_AT, REPEATED_WORDS, repeats
from pipeline.agent.model_messages import EXCHANGE, LOADED
from pipeline.agent.node import LOOP, THOUGHTS
from pipeline.agent.sent_files import sent_files
from pipeline.domain.chat import ChatMessage, ToolCall, message_from_plain, message_to_plain
from pipeline.domain.errors import TurnFailed
from pipeline.graph.definition.decisions import Next, NodeResult, State
from pipeline.runtime.arrivals import STEERED
from pipeline.runtime.context import RunContext
from pipeline.runtime.ports import ToolResult

UNASKED: Final = "unasked"
"""In the detail of a thought: what its call did not do because no one could be asked, a sentence each."""
META_TOOLS = ("load_tools", "load_skills")
"""Tools whose calls cost one more round."""
_THOUGHT_CHARS = 80


async def act(state: State, context: RunContext) -> NodeResult:
    """Propose the calls of the newest answer, one after the other, then get what the author sent meanwhile.

    Updates `exchange` (the results, in the order of the calls, and those messages), `loaded` (groups and
    skills), `thoughts` and `loop` (`rounds`, `steered`: the ids of those messages, and `answer`: the tools'
    own answer texts).
    Raises TurnFailed for a call that is repeated too often.
    """
    # The model that proposed the calls saw the history, whose foreign words count against them. Another
    # process may have read it.
    await context.history.conversation()
    context.scope.foreign.read(map(message_from_plain, state[EXCHANGE]))
    # Another process may have executed earlier calls of the run.
    context.scope.files.note(sent_files(state))
    asked = message_from_plain(state[EXCHANGE][-1])
    loaded = state.get(LOADED, {})
    groups: list[str] = list(loaded.get("groups", ()))
    skills: list[str] = list(loaded.get("skills", ()))
    results: list[dict[str, Any]] = []
    thoughts: list[dict[str, Any]] = []
    answers: list[str] = []
    for call in asked.tool_calls:
        known_unasked = len(context.scope.unasked)
        result = await _done(call, state, groups, context)
        _add(groups, result.groups)
        _add(skills, result.skills)
        answer = ChatMessage(
            role="tool",
            content=result.content,
            tool_call_id=call.id,
            foreign=result.foreign,
            sends=result.files,
        )
        results.append(message_to_plain(answer))
        thoughts.append(_thought(call, result, context.scope.unasked[known_unasked:], context))
        if call.name not in META_TOOLS:
            answers.append(result.answer)
    loop = state[LOOP]
    known = loop.get(STEERED, ())
    steered = await context.steered(known)
    if steered:
        results += [message_to_plain(one.message) for one in steered]
        loop = {**loop, STEERED: [*known, *(one.message_id for one in steered)]}
        answers.append("")  # the model has to answer them
    cost = 1 + any(call.name in META_TOOLS for call in asked.tool_calls)
    return NodeResult(
        update={
            EXCHANGE: results,
            LOADED: {"groups": groups, "skills": skills},
            THOUGHTS: thoughts,
            LOOP: {
                **loop,
                "rounds": loop.get("rounds", 0) + cost,
                # Only where every tool gave an answer text: a partial answer is useless.
                "answer": "\n\n".join(answers) if all(answers) else "",
            },
        },
        decision=Next(),
    )


async def _done(call: ToolCall, state: State, groups: list[str], context: RunContext) -> ToolResult:
    times = repeats(state[EXCHANGE], call)
    if times >= END_AT:
        raise TurnFailed("max_loops", DOOM_WORDS)
    if times >= REFUSE_AT:
        return ToolResult(content=REPEATED_WORDS.format(number=times), success=False)
    return await context.tools.propose(call, tuple(groups), context.scope)


def _thought(
    call: ToolCall, result: ToolResult, unasked: Sequence[str], context: RunContext
) -> dict[str, Any]:
    outcome = context.redactor.line(result.summary or result.content, _THOUGHT_CHARS)
    detail: dict[str, Any] = {"tool_name": call.name, "success": result.success}
    if unasked:
        detail[UNASKED] = list(unasked)
    return {"stage": "tool_call", "summary": f"{call.name} -> {outcome}", "detail": detail}


def _add(known: list[str], more: Iterable[str]) -> None:
    known += [one for one in more if one not in known]
