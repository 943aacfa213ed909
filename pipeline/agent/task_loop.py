"""Run one execution of a task node: turns of the model, its calls, and the judge after each turn."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import field
from typing import Any, Final

from pipeline.agent.judge import FEEDBACK, VERDICT, Charge, JudgeVerdict, judged
from pipeline.agent.loops import DOOM_WORDS, END_AT, REFUSE_AT, REPEATED_WORDS, STALL_WORDS, repeats, stalled
from pipeline.agent.pictures import with_files, with_pictures
from pipeline.agent.sent_files import noted
from pipeline.agent.task_prompt import layered_prompt
from pipeline.agent.task_texts import (
    DIALOGUE,
    SET_OUTPUT,
    TASKS,
    fitted_messages,
    known_values,
    opening_words,
    read_output,
    set_output_tool,
)
from pipeline.agent.usage_metering import UsageMeter
from pipeline.domain.chat import (
    ChatMessage,
    ToolCall,
    ToolDefinition,
    message_from_plain,
    message_to_plain,
)
from pipeline.domain.conversation import PastTurn
from pipeline.domain.errors import GraphError, ModelError
from pipeline.domain.files import StoredFile
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.execution.step import Step, current_step
from pipeline.llm.client import LlmFinished, LlmRequest, TextDelta, ToolAsked
from pipeline.runtime.context import RunContext

_log = logging.getLogger(__name__)

MAX_TURNS: Final = 50
"""Calls of the model in one execution of the node."""
MAX_CALLS: Final = 15
"""The most tool calls that one turn makes: ten, plus half as many."""
_DISCARDED = (
    f"Discarded: at most {MAX_CALLS} tool calls are made in one turn. Ask again for what you still need."
)
_JUDGE_TOKENS = 300
_CONTINUE_STEP = "Continue with this step."


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The parameters of a task node; see `task.task_node`."""

    charge: Charge
    groups: tuple[str, ...]
    identity: str
    isolated: bool
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """One answer of the model; plain data in the effect's record."""

    text: str
    calls: tuple[ToolCall, ...]
    attempts: int


class _TaskFailed(Exception):
    """The node has failed; the message says why."""


def sees_nothing_else(state: State) -> bool:
    """Whether a task of this run sees no conversation but its own, as the graph says."""
    return bool(state.get(TASKS, {}).get("mode") == "isolated")


@dataclass(slots=True)
class Work:
    """One execution. The model, its tools and the judge append to `said`; `set_output` fills `outputs`."""

    task: Task
    state: State
    context: RunContext
    step: Step = field(init=False)
    alone: bool = field(init=False)
    """Sees neither the session nor the conversation of the other tasks."""
    shared: tuple[ChatMessage, ...] = field(init=False)
    earlier: tuple[PastTurn, ...] = ()
    """The session before this message, once it is read."""
    said: list[ChatMessage] = field(init=False)
    outputs: dict[str, Any] = field(default_factory=dict)
    groups: list[str] = field(init=False)
    files: list[StoredFile] = field(init=False)
    """What its tools have returned."""
    retries: int = field(init=False)

    def __post_init__(self) -> None:
        self.step = current_step()
        notes = self.state.get(TASKS, {})
        self.alone = self.task.isolated or sees_nothing_else(self.state)
        plain = () if self.alone else self.state.get(DIALOGUE, ())
        self.shared = tuple(message_from_plain(one) for one in plain)
        # A transition marker at the end of the shared conversation opens this step.
        self.said = []
        if not self.shared or self.shared[-1].role != "user":
            # A shared conversation without notes is kept from an earlier run: this message is new to it.
            continues = bool(self.shared and notes)
            values = known_values(self.state)
            if continues:
                self.said.append(ChatMessage(role="user", content=_CONTINUE_STEP))
            else:
                words = opening_words(self.context.text, values)
                self.said.append(with_files(ChatMessage(role="user", content=words), self.context))
        self.groups = []
        self.files = []
        self.retries = self.context.settings.max_retries

    async def done(self) -> NodeResult:
        """Work until the judge accepts. The update has the outputs, the conversation, and the answer."""
        if not self.alone:
            self.earlier = (await self.context.history.conversation()).turns
        await self._load()
        try:
            verdict = await self._judged_work()
        except _TaskFailed as failure:
            return NodeResult(error=str(failure), permanent=True)
        update: dict[str, Any] = {**self.outputs, TASKS: {self.step.node: self._note(verdict)}}
        if not self.task.isolated:
            update[DIALOGUE] = [message_to_plain(message) for message in self.said]
        if self.task.answer:
            text = self.outputs.get(self.task.answer)
            answer = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
            # `set_output` may have joined two halves of a secret.
            answer = self.context.redactor.text(answer)
            await self.context.on_text(answer)
            update["agent"] = {"status": "done", "answer": answer}
        return NodeResult(update=update)

    async def _load(self) -> None:
        """Load the node's initial tool groups through the gate, as a call of the model does."""
        if not self.task.groups:
            return
        arguments = json.dumps({"groups": list(self.task.groups)})
        call = ToolCall(id="load", name="load_tools", arguments=arguments)
        result = await self.context.tools.propose(call, (), self.context.scope)
        self.groups += result.groups
        if set(self.groups) != set(self.task.groups):
            _log.warning("tools are missing", extra={"node": self.step.node, "reason": result.content})

    async def _judged_work(self) -> JudgeVerdict:
        for turn in range(1, MAX_TURNS + 1):
            answer = await self._turn(turn)
            if any(call.name != SET_OUTPUT for call in answer.calls):
                continue  # Silently: the model has to see its results first.
            verdict = await self._verdict(turn)
            if verdict.action == "ACCEPT":
                return verdict
            if verdict.action == "ESCALATE":
                raise _TaskFailed(f"Judge escalated: {verdict.feedback}")
            feedback = FEEDBACK.format(feedback=verdict.feedback)
            self.said.append(ChatMessage(role="user", content=feedback))
        raise _TaskFailed(f"The step was not finished within {MAX_TURNS} turns.")

    async def _turn(self, turn: int) -> _Said:
        """One answer of the model, and the results of its calls."""
        if self.groups:
            await self.context.tools.prepare(tuple(self.groups), self.context.scope)
        tools = (
            *self.context.tools.offered(tuple(self.groups), self.context.scope),
            set_output_tool(self.task.charge.outputs),
        )
        plain = await self.step.effect(f"turn {turn}", lambda: self._ask(tools), repeatable=True)
        # A model's ids are unique only within one answer. The gate's effects are keyed by them, and some
        # providers require them to be unique in the whole conversation.
        calls = tuple(
            ToolCall(
                id=f"t{len(self.shared)}_{turn}_{number}", name=call["name"], arguments=call["arguments"]
            )
            for number, call in enumerate(plain["calls"], 1)
        )
        answer = _Said(text=plain["text"], calls=calls, attempts=plain["attempts"])
        self.retries = max(0, self.retries - (answer.attempts - 1))
        self.said.append(ChatMessage(role="assistant", content=answer.text, tool_calls=calls))
        exchange = [message_to_plain(message) for message in self.said]
        if stalled(exchange):
            raise _TaskFailed(STALL_WORDS)
        results = [
            _result(call, await self._called(call, number, exchange)) for number, call in enumerate(calls, 1)
        ]
        self.said += results
        return answer

    async def _called(self, call: ToolCall, number: int, exchange: Sequence[Mapping[str, Any]]) -> str:
        if number > MAX_CALLS:
            return _DISCARDED
        count = repeats(exchange, call)
        if count >= END_AT:
            raise _TaskFailed(DOOM_WORDS)
        if count >= REFUSE_AT:
            return REPEATED_WORDS.format(number=count)
        if call.name == SET_OUTPUT:
            return self._output_set(call.arguments)
        result = await self.context.tools.propose(call, tuple(self.groups), self.context.scope)
        self.groups += [group for group in result.groups if group not in self.groups]
        self.files += result.files
        return result.content

    def _note(self, verdict: JudgeVerdict) -> dict[str, Any]:
        files = noted(self.state, self.step.node, self.files)
        return {"verdict": verdict.action, "confidence": verdict.confidence, **files}

    def _output_set(self, arguments: str) -> str:
        """Store one output. Returns the result text for the model."""
        try:
            key, value = read_output(arguments, self.task.charge.outputs)
            # Kept outputs survive a cancellation in the middle of the node.
            self.step.keep({key: value})
        except (ValueError, GraphError) as error:
            return f"Not set: {error}"
        self.outputs[key] = value
        return f"{key} is set."

    async def _verdict(self, turn: int) -> JudgeVerdict:
        asked = 0

        async def ask(messages: tuple[ChatMessage, ...]) -> str:
            nonlocal asked
            asked += 1
            name = f"judge {turn}" if asked == 1 else f"judge {turn} again"
            return str(await self.step.effect(name, lambda: self._asked_judge(messages), repeatable=True))

        said = (*self.shared, *self.said)
        closed = self.context.fails_closed
        return await judged(self.task.charge, self.outputs, said, ask, fails_closed=closed)

    async def _asked_judge(self, messages: tuple[ChatMessage, ...]) -> str:
        request = LlmRequest(
            messages=messages,
            schema=VERDICT,
            max_tokens=_JUDGE_TOKENS,
            temperature=0.0,
            timeout_s=self.context.settings.llm_timeout_s,
            retries=0,
        )
        try:
            return str((await self._streamed(request))["text"])
        except ModelError as error:
            _log.warning("a judge did not answer", extra={"node": self.step.node, "reason": str(error)})
            return ""

    async def _ask(self, tools: tuple[ToolDefinition, ...]) -> dict[str, Any]:
        settings = self.context.settings
        messages, pictures = await with_pictures(self.context, self._messages(tools))
        request = LlmRequest(
            messages=messages,
            pictures=pictures,
            tools=tools,
            max_tokens=settings.max_answer_tokens,
            temperature=settings.temperature,
            timeout_s=settings.llm_timeout_s,
            retries=self.retries,
        )
        return await self._streamed(request)

    def _messages(self, tools: tuple[ToolDefinition, ...]) -> tuple[ChatMessage, ...]:
        settings, charge = self.context.settings, self.task.charge
        prompt = layered_prompt(
            identity=self.task.identity or settings.system_prompt,
            completed=self.state.get(TASKS, {}).get("completed", ()),
            values=known_values(self.state),
            focus=charge.instructions,
            outputs=charge.outputs,
        )
        room = settings.context_tokens - settings.max_answer_tokens
        return fitted_messages(prompt, self.earlier, (*self.shared, *self.said), tools, room)

    async def _streamed(self, request: LlmRequest) -> dict[str, Any]:
        """A whole answer as plain data, without secrets; its usage is counted."""
        safe = self.context.redactor.text
        calls: list[dict[str, str]] = []
        llm = self.context.llm
        async with UsageMeter(request, self.context) as taken, aclosing(llm.stream(request)) as stream:
            async for item in stream:
                match item:
                    case TextDelta(text=text):
                        taken.parts.append(text)
                    case ToolAsked(call=call):
                        calls.append({"name": call.name, "arguments": safe(call.arguments)})
                    case LlmFinished():
                        taken.finished = item
        attempts = taken.finished.attempts if taken.finished else 1
        return {"text": safe("".join(taken.parts)).strip(), "calls": calls, "attempts": attempts}


def _result(call: ToolCall, content: str) -> ChatMessage:
    return ChatMessage(role="tool", content=content, tool_call_id=call.id)
