"""Build the messages that later turns see of a turn that ended without an answer.

Every call of the model has a result: its own, or a text that says how far the call got. So a later turn
neither repeats a call that was made nor relies on one that was not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pipeline.agent.model_messages import EXCHANGE
from pipeline.domain.chat import ChatMessage, ToolCall, ToolDefinition, message_from_plain
from pipeline.domain.marking import marked
from pipeline.graph.run.outcome import Effect, RunOutcome
from pipeline.graph.run.records import RawRecord, valid_records
from pipeline.runtime.ports import EXECUTION, ToolGate, ToolResult
from pipeline.runtime.scope import TurnScope

NOT_DONE: Final = "Not done: the turn ended before this call was carried out."
CUT_OFF: Final = "Cut off: the turn ended while this call was carried out. It is unknown whether it was done."


@dataclass(slots=True)
class _Made:
    """A call that the model proposed in this turn."""

    call: ToolCall
    content: str = ""
    """The content of its result; empty without a result."""
    foreign: str = ""
    """As `ToolResult.foreign`."""


class NotedTools:
    """A `ToolGate` that passes everything to another gate and notes each call and its result."""

    def __init__(self, gate: ToolGate) -> None:
        self._gate = gate
        self._made: list[_Made] = []

    async def prepare(self, groups: Sequence[str], scope: TurnScope) -> None:
        """See `ToolGate.prepare`."""
        await self._gate.prepare(groups, scope)

    def offered(self, groups: Sequence[str], scope: TurnScope) -> tuple[ToolDefinition, ...]:
        """See `ToolGate.offered`."""
        return self._gate.offered(groups, scope)

    async def propose(self, call: ToolCall, groups: Sequence[str], scope: TurnScope) -> ToolResult:
        """See `ToolGate.propose`."""
        made = _Made(call)
        self._made.append(made)
        result = await self._gate.propose(call, groups, scope)
        made.content, made.foreign = result.content, result.foreign
        return result

    def exchange(self, outcome: RunOutcome | None) -> tuple[ChatMessage, ...]:
        """The messages up to the end of the turn, each call followed by one result.

        `outcome` is how the run ended, None where none began. Reads the state's `exchange` and, of the node
        execution that was cut off, the noted calls and the effects.
        """
        state = {} if outcome is None else outcome.state
        effects = {} if outcome is None else {effect.key: effect for effect in outcome.effects}
        said = [message_from_plain(plain) for plain in state.get(EXCHANGE, ())]
        pending: tuple[ToolCall, ...] = ()
        if said and said[-1].tool_calls:
            pending = said[-1].tool_calls
        noted = {made.call.id: made for made in self._made}
        said += [_result(noted.get(call.id) or _Made(call), effects) for call in pending]
        # A task node keeps its conversation outside of the state until it is done.
        known = {call.id for message in said for call in message.tool_calls}
        others = _with_own_ids([made for made in self._made if made.call.id not in known])
        if others:
            said.append(
                ChatMessage(role="assistant", content="", tool_calls=tuple(made.call for made in others))
            )
            said += [_result(made, effects) for made in others]
        return tuple(said)


def has_acted(records: Sequence[RawRecord]) -> bool:
    """Whether the run in `records` has begun to execute a call that may change something."""
    return any(
        record is not None
        and record.get("do") == "effect"
        and str(record.get("key", "")).startswith(EXECUTION)
        for record in valid_records(records)
    )


def _result(made: _Made, effects: Mapping[str, Effect]) -> ChatMessage:
    """The message that answers the call."""
    call, content, foreign = made.call, made.content, made.foreign
    if not content:
        effect = effects.get(EXECUTION + call.id)
        content = _how_far(call, effect)
        if effect is not None and effect.done and isinstance(effect.result, Mapping):
            foreign = str(effect.result.get("foreign", ""))
    return ChatMessage(role="tool", content=content, tool_call_id=call.id, foreign=foreign)


def _how_far(call: ToolCall, effect: Effect | None) -> str:
    """The text for a call without a result in this process: how far it got."""
    if effect is None:
        return NOT_DONE
    if not effect.done or not isinstance(effect.result, Mapping):
        return CUT_OFF
    kept: Mapping[str, Any] = effect.result
    text = str(kept.get("text", ""))
    return marked(call.name, text) if kept.get("content") else text


def _with_own_ids(made: Sequence[_Made]) -> list[_Made]:
    """`made` with unique ids: two task nodes may have used the same numbers."""
    taken: set[str] = set()
    found: list[_Made] = []
    for one in made:
        number, own = 2, one.call.id
        while own in taken:
            own, number = f"{one.call.id}_{number}", number + 1
        taken.add(own)
        found.append(replace(one, call=replace(one.call, id=own)))
    return found
