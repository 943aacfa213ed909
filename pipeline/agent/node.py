"""The agent node: one streamed model call. `tool_node` executes the calls; `after_agent` picks the edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pipeline.agent.loops import STALL_WORDS, stalled
from pipeline.agent.model_messages import EXCHANGE, LOADED, build_messages
from pipeline.agent.pictures import with_pictures
from pipeline.agent.status_tags import NUDGE, StatusTags, VisibleStream, declared
from pipeline.agent.usage_metering import UsageMeter
from pipeline.domain.chat import ChatMessage, ToolCall, ToolDefinition, message_from_plain, message_to_plain
from pipeline.domain.errors import ModelError, ModelUnavailable, TurnFailed
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import End, Next, NodeResult, State
from pipeline.graph.definition.spec import END
from pipeline.intake.cleaning import clean_text
from pipeline.llm.client import LlmFinished, LlmItem, LlmRequest, TextDelta, ToolAsked
from pipeline.llm.empty_answer_retry import read_answer
from pipeline.llm.failures import EmptyAnswer
from pipeline.runtime.context import RunContext, ignore_text

CUT_NOTICE = "\n\n[The answer reached its length limit.]"
ROUNDS_NOTICE = "\n\n[I stopped here: {rounds} rounds of tools are the most that one message may take.]"
LOOP = "loop"
"""The state's key for the counters of the agent's loop."""
THOUGHTS = "thoughts"
"""The state's key for the reasoning steps that are stored with the answer."""
MAX_THOUGHT_CHARS = 2_000
_NAME_CHARS = 64
"""The most of a tool's name that every provider accepts."""
_ARGUMENT_CHARS = 400_000
"""Twice the longest file that a tool writes. Cut arguments are not JSON, and the model gets that error."""
_ID_CHARS = 32
"""The most of an id that gets a number appended: OpenAI accepts 40 characters."""

_UNFINISHED = LlmFinished(finish_reason="stop")
"""Of an answer that the model did not give."""
_CONTINUE = "Continue."
_OUT_OF_ROUNDS = "No more tools can be used for this message. Answer now with what you have."


class _Answer:
    """One answer of the model, shown to people while it arrives; `silent` shows nothing of it. `earlier` is
    the visible text of the answers before it in this turn."""

    def __init__(self, request: LlmRequest, context: RunContext, earlier: str, *, silent: bool) -> None:
        self.meter = UsageMeter(request, context)
        self.shown = ""
        """The part that has been streamed."""
        self.calls: list[ToolCall] = []
        self.finish_reason = ""
        """Why the answer ended, if not for the reason that the model gave."""
        self._context = context
        self._gap = "\n\n" if earlier else ""
        # Without a reader no stream is made: the text is redacted once, when it is whole.
        self._visible = None if silent else VisibleStream()
        self._safe = None if silent else context.redactor.stream()

    @property
    def finished(self) -> LlmFinished:
        """The end of the stream."""
        finished = self.meter.finished or _UNFINISHED
        return replace(finished, finish_reason=self.finish_reason) if self.finish_reason else finished

    async def take(self, item: LlmItem) -> None:
        """Take the next item of the model's stream."""
        if isinstance(item, TextDelta):
            self.meter.parts.append(item.text)
            if self._visible is not None and self._safe is not None:
                text = self._safe.feed(self._visible.feed(item.text))
                if text:
                    await self._show(text)
        elif isinstance(item, ToolAsked):
            # The record and the tools get the call without secrets as well.
            self.calls.append(_safe(item.call, self._context))
        else:
            self.meter.finished = item

    async def end(self) -> None:
        """Show what was held back until the stream ended."""
        if self._visible is None or self._safe is None:
            return
        rest = self._visible.finish()
        text = (self._safe.feed(rest) if rest else "") + self._safe.finish()
        if text:
            await self._show(text)

    async def _show(self, text: str) -> None:
        await self._context.on_text(text if self.shown else self._gap + text)
        self.shown += text


async def agent(state: State, context: RunContext) -> NodeResult:
    """Stream one answer.

    Updates `agent` (`status`, `answer`: the whole visible text so far, `status_report`, `blocker_reason`,
    `unblock_requirements`, `finish_reason`, tokens, `updated_at`), `exchange` (the model's words and calls,
    unless they are the last), `thoughts`, and `loop` (`rounds`, `loops`, `nudged`, `retries`, `next`).
    Raises the model's errors, also for an answer without text and calls, and TurnFailed for a model that
    repeats itself.
    """
    settings, loop = context.settings, state.get(LOOP, {})
    # Needed for runs that an earlier process began.
    context.scope.foreign.read(map(message_from_plain, state.get(EXCHANGE, ())))
    if settings.tool_answers and loop.get("answer"):
        return await _answered_by_tools(state, context)
    out_of_rounds = loop.get("rounds", 0) >= settings.max_rounds
    tools = () if out_of_rounds else await _offered(state, context)
    retries = loop.get("retries", settings.max_retries)
    messages = await build_messages(context, state, tools)
    if out_of_rounds:
        messages = (*messages, ChatMessage(role="user", content=_OUT_OF_ROUNDS))
    messages, pictures = await with_pictures(context, messages)
    request = LlmRequest(
        messages=messages,
        pictures=pictures,
        tools=tools,
        asked=clean_text(context.text),
        max_tokens=settings.max_answer_tokens,
        temperature=settings.temperature,
        timeout_s=settings.llm_timeout_s,
        retries=retries,
    )
    earlier = state.get("agent", {}).get("answer", "")
    if earlier:
        await context.on_earlier(earlier)
    # The answer exists already; the nudge asks only for its status, which people do not see.
    nudged = loop.get("nudged", False) and not out_of_rounds
    # Without a reader, the text is redacted once, when it is whole.
    silent = nudged or context.on_text is ignore_text
    said = _Answer(request, context, earlier, silent=silent)
    try:
        async with said.meter:
            await read_answer(context.llm, request, context.clock, said.take)
            await said.end()
    except ModelError as error:
        if not (nudged or (out_of_rounds and isinstance(error, EmptyAnswer))):
            raise
        said = _Answer(request, context, earlier, silent=silent)
    said.calls = [] if out_of_rounds else _with_unique_ids(said.calls, messages)
    found = _read(said, context, nudged=nudged)
    if not found.visible and not said.calls and not out_of_rounds:
        raise ModelUnavailable("The model gave an empty answer. Please send the message again.")
    if stalled(state.get(EXCHANGE, ()), found.visible) and not said.calls:
        raise TurnFailed("stalled", STALL_WORDS)
    last = out_of_rounds and found.status != "blocked"
    step = _LAST if last else _following(found, said, loop, context)
    text = await _shown_whole(found, said, step, earlier, context)
    if out_of_rounds:
        notice = ROUNDS_NOTICE.format(rounds=settings.max_rounds)
        text += notice
        await context.on_text(notice)
    update: dict[str, Any] = {
        "agent": _outcome(found, said.finished, step, _joined(earlier, text.strip()))
        | {"updated_at": context.clock.now()},
        LOOP: {**loop, **step.loop, "retries": max(0, retries - (said.finished.attempts - 1))},
        EXCHANGE: [message_to_plain(message) for message in _for_the_model(found, said, step)],
        THOUGHTS: _reasoning(found) if step.next == "act" else [],
    }
    return NodeResult(update=update, decision=End("blocked") if step.status == "blocked" else Next())


def _read(said: _Answer, context: RunContext, *, nudged: bool) -> StatusTags:
    """The answer's status tags. A nudged answer that only says "done" adds no text."""
    # Parse before redacting: removing a wrapper joins the halves of a secret around it.
    found = declared("".join(said.meter.parts)).through(context.redactor.text)
    if nudged and not said.calls and found.status in ("done", "in_progress"):
        said.finish_reason = "stop"
        return StatusTags(status="done", prose="", report=found.report)
    return found


def after_agent(state: State) -> str:
    """The conditional edge after the agent."""
    following = state[LOOP]["next"]
    return END if following == "end" else str(following)


async def _answered_by_tools(state: State, context: RunContext) -> NodeResult:
    """End the turn with the tools' own answer texts: small models misreport what the tools did."""
    loop = state[LOOP]
    earlier = state.get("agent", {}).get("answer", "")
    if earlier:
        await context.on_earlier(earlier)
    text = context.redactor.text(loop["answer"])
    await context.on_text(f"\n\n{text}" if earlier else text)
    found = StatusTags(status="in_progress", prose=text)
    answer = _joined(earlier, text)
    return NodeResult(
        update={
            "agent": _outcome(found, _UNFINISHED, _LAST, answer) | {"updated_at": context.clock.now()},
            LOOP: {**loop, **_LAST.loop},
            EXCHANGE: [],
            THOUGHTS: [],
        },
        decision=Next(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """The run's next step after an answer."""

    status: str
    next: str
    """`act`, `agent` or `end`."""
    loop: dict[str, Any]
    reply: str = ""
    """The user message for the model's next call."""


_LAST = _Step(status="done", next="end", loop={"nudged": False, "next": "end"})
"""The step after the last answer of a turn."""


def _following(found: StatusTags, said: _Answer, loop: State, context: RunContext) -> _Step:
    """Done and blocked end; tool calls and `continue` loop. An answer without a status is done; in the mode
    `nudged`, the model is asked once for the status first."""
    loops, nudged = loop.get("loops", 0), loop.get("nudged", False)
    if said.calls:
        return _Step(
            status="in_progress", next="act", loop={"loops": loops + 1, "nudged": False, "next": "act"}
        )
    if found.status in ("done", "blocked"):
        return _Step(status=found.status, next="end", loop={"next": "end"})
    if found.status == "continue":
        return _Step(
            status="continue",
            next="agent",
            loop={"loops": loops + 1, "nudged": False, "next": "agent"},
            reply=_CONTINUE,
        )
    if context.settings.completion == "nudged" and not nudged:
        return _Step(status="in_progress", next="agent", loop={"nudged": True, "next": "agent"}, reply=NUDGE)
    return _LAST


def _with_unique_ids(calls: Sequence[ToolCall], messages: Sequence[ChatMessage]) -> list[ToolCall]:
    """The calls with ids that are unique in the conversation. Some models restart their numbers in each
    answer, and some providers refuse duplicates. A unique id stays: it may mean something to the provider."""
    taken = {call.id for message in messages for call in message.tool_calls} if calls else set()
    found: list[ToolCall] = []
    for call in calls:
        number, own = 2, call.id
        while own in taken:
            own, number = f"{call.id[:_ID_CHARS]}_{number}", number + 1
        taken.add(own)
        found.append(replace(call, id=own))
    return found


async def _offered(state: State, context: RunContext) -> tuple[ToolDefinition, ...]:
    groups = state.get(LOADED, {}).get("groups", ())
    if groups:
        await context.tools.prepare(groups, context.scope)
    return context.tools.offered(groups, context.scope)


def _joined(earlier: str, text: str) -> str:
    return f"{earlier}\n\n{text}" if earlier and text else earlier or text


def _safe(call: ToolCall, context: RunContext) -> ToolCall:
    """The call without secrets, and cut to what a tool accepts: a broken model may write megabytes."""
    arguments = context.redactor.excerpt(call.arguments, _ARGUMENT_CHARS).text
    return replace(call, name=call.name[:_NAME_CHARS], arguments=arguments)


async def _shown_whole(
    found: StatusTags, said: _Answer, step: _Step, earlier: str, context: RunContext
) -> str:
    """Stream the rest of the visible text. Returns the whole visible text of this answer."""
    # A key result after an answer that the user has already seen would repeat it.
    bare = not said.calls and not found.prose and not (earlier and step.status == "done")
    text = found.visible if bare or step.status == "blocked" else found.prose
    if said.finished.finish_reason == "length" and not said.calls:
        text += CUT_NOTICE
    rest = text.removeprefix(said.shown.strip())
    if rest.strip():
        await context.on_text(f"\n\n{rest}" if earlier and not said.shown.strip() else rest)
    return text


def _outcome(found: StatusTags, finished: LlmFinished, step: _Step, answer: str) -> dict[str, Any]:
    return {
        "status": step.status,
        "answer": answer,
        "status_report": found.note if found.status != "in_progress" else None,
        "blocker_reason": found.blocker_reason or None,
        "unblock_requirements": found.unblock_requirements or None,
        "finish_reason": finished.finish_reason,
        "prompt_tokens": finished.prompt_tokens,
        "completion_tokens": finished.completion_tokens,
    }


def _for_the_model(found: StatusTags, said: _Answer, step: _Step) -> list[ChatMessage]:
    """The messages that the model's next call gets: this answer and the reply to it."""
    if step.next == "end":
        return []
    words = found.prose if said.calls else found.visible
    messages = [ChatMessage(role="assistant", content=words, tool_calls=tuple(said.calls))]
    if step.reply:
        messages.append(ChatMessage(role="user", content=step.reply))
    return messages


def _reasoning(found: StatusTags) -> list[dict[str, Any]]:
    """The text before a tool call, as a thought."""
    if not found.prose:
        return []
    return [{"stage": "reasoning", "summary": found.prose[:MAX_THOUGHT_CHARS]}]
