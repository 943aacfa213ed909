"""The kinds `model` and `judge`: one question to the run's model, and its checked answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from pipeline.agent.judge import VERDICT, Charge, judged
from pipeline.agent.pictures import with_files, with_pictures
from pipeline.agent.usage_metering import metered_text
from pipeline.domain.chat import ChatMessage
from pipeline.domain.errors import ModelError
from pipeline.domain.frozen import dataclass
from pipeline.domain.json_schema import JsonSchema
from pipeline.graph.definition.decisions import NodeResult, Revise, State
from pipeline.graph.definition.frozen_json import thaw
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.spec import NodeSpec
from pipeline.graph.documents.fields import Fields
from pipeline.graph.execution.step import Step, current_step
from pipeline.llm.client import LlmRequest
from pipeline.llm.structured import structured
from pipeline.nodes.answers import answered
from pipeline.nodes.failures import StepFailed
from pipeline.nodes.intake_steps import MESSAGE
from pipeline.nodes.templates import DATA_NOTE, Template, marked, template_field
from pipeline.runtime.context import RunContext
from pipeline.runtime.settings import PipelineSettings

ONCE: Final = RetryPolicy(max_attempts=1)
"""The model's client retries by itself."""
_MAX_OUTPUTS = 20
_KEY = re.compile(r"[A-Za-z_]\w{0,63}")
_JUDGE_TOKENS = 300
_OBJECT_TOKENS = 400
_LEAST_CHARS = 200


def model_kind(given: Fields) -> NodeSpec[RunContext]:
    """One question to the model. `prompt` is a template. With `outputs`, an object of name -> JSON schema,
    the answer has that form and its values are written under these names; else `output` names the key of the
    whole text. With `answer`, the text is shown to the person."""
    outputs = _outputs(given)
    ask = _Model(
        prompt=template_field(given, "prompt"),
        system=given.text("system", default=""),
        outputs=outputs,
        output=given.text("output", default="" if given.has("outputs") or given.has("answer") else None),
        answer=given.flag("answer"),
        max_tokens=given.whole("max_tokens", default=0),
    )
    if given.has("outputs") and (given.has("output") or ask.answer):
        given.note("outputs", "give either outputs, or output and answer for a text")
    writes = (*outputs, *((ask.output,) if ask.output else ()), *(("agent",) if ask.answer else ()))
    return NodeSpec(run=ask, writes=writes, retry=ONCE, goes_to=())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    prompt: Template
    system: str
    outputs: Mapping[str, Any]
    output: str
    answer: bool
    max_tokens: int

    def _shown(self, settings: PipelineSettings, file_tokens: int) -> Callable[[Any], str]:
        """Writes values so that all together leave room in the model's window, also for the files."""
        # A character may be a token, and the rest of the prompt needs room as well.
        room = (settings.context_tokens - settings.max_answer_tokens - file_tokens) * 3 // 4
        return partial(marked, most=max(_LEAST_CHARS, room // max(1, self.prompt.places)))

    async def __call__(self, state: State, context: RunContext) -> NodeResult:
        system = f"{self.system or context.settings.system_prompt}\n\n{DATA_NOTE}"
        # The files belong to the message: a prompt without it is about something else.
        has_files = bool(context.files) and self.prompt.has(MESSAGE)
        shown = self._shown(context.settings, context.file_tokens if has_files else 0)
        asked = ChatMessage(role="user", content=self.prompt.render(state, shown))
        if has_files:
            asked = with_files(asked, context)
        messages = (ChatMessage(role="system", content=system), asked)
        asking = _Asking(current_step(), context, self.max_tokens)
        if self.outputs:
            form = {"type": "object", "properties": dict(self.outputs), "required": list(self.outputs)}
            schema = JsonSchema(name="outputs", schema=form)
            asking.schema = schema
            found = await structured(messages, schema, asking)
            return NodeResult(update={key: found[key] for key in self.outputs})
        text = (await asking(messages)).strip()
        update: dict[str, Any] = {self.output: text} if self.output else {}
        return NodeResult(update=update | (await answered(text, state, context) if self.answer else {}))


class _Asking:
    """Asks the model; each answer is an effect of the step, so that a resumed run does not ask again."""

    def __init__(self, step: Step, context: RunContext, max_tokens: int, *, cold: bool = False) -> None:
        self.schema: JsonSchema | None = None
        self._step = step
        self._context = context
        self._max_tokens = max_tokens
        self._cold = cold
        self._asked = 0

    def _usual_tokens(self, settings: PipelineSettings) -> int:
        # A text that is cut can be read; an object that is cut cannot.
        least = 0 if self.schema is None else _OBJECT_TOKENS
        return max(settings.max_answer_tokens, least)

    async def __call__(self, messages: tuple[ChatMessage, ...]) -> str:
        settings = self._context.settings
        messages, pictures = await with_pictures(self._context, messages)
        request = LlmRequest(
            messages=messages,
            pictures=pictures,
            schema=self.schema,
            max_tokens=self._max_tokens or self._usual_tokens(settings),
            temperature=0.0 if self._cold or self.schema else settings.temperature,
            timeout_s=settings.llm_timeout_s,
            retries=settings.max_retries,
        )
        self._asked += 1

        async def call() -> str:
            return self._context.redactor.text(await metered_text(request, self._context))

        # A further attempt of the node asks again; a restart in the middle of one does not.
        key = f"ask {self._step.attempt}.{self._asked}"
        return str(await self._step.effect(key, call, repeatable=True))


def judge_kind(given: Fields) -> NodeSpec[RunContext]:
    """Checks the state's `keys` against `criteria`. Accepted, the edges are followed; sent back, the run
    returns to the node's `reviser`, at most `rounds` - 1 times. It fails where it gives up, and where there
    is no `reviser` to return to. Writes the verdict under `output`."""
    judge = _Judge(
        charge=Charge(
            instructions=given.text("instructions", default=""),
            outputs=given.texts("keys"),
            criteria=given.text("criteria"),
        ),
        output=given.text("output", default="verdict"),
        rounds=given.whole("rounds", default=3),
    )
    if not judge.charge.outputs:
        given.note("keys", "names no key to judge")
    if judge.rounds < 1:
        given.note("rounds", "must be at least 1")
    return NodeSpec(run=judge, writes=(judge.output,), retry=ONCE, goes_to=())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judge:
    charge: Charge
    output: str
    rounds: int

    async def __call__(self, state: State, context: RunContext) -> NodeResult:
        step = current_step()
        outputs = {key: thaw(state.get(key)) for key in self.charge.outputs}
        asking = _Asking(step, context, _JUDGE_TOKENS, cold=True)
        asking.schema = VERDICT

        async def ask(messages: tuple[ChatMessage, ...]) -> str:
            try:
                return await asking(messages)
            except ModelError:
                return ""  # The judge accepts with little confidence, as in a task node.

        verdict = await judged(self.charge, outputs, (), ask, fails_closed=context.fails_closed)
        found = {
            "action": verdict.action,
            "confidence": verdict.confidence,
            "feedback": verdict.feedback,
        }
        update = {self.output: found}
        if verdict.action == "ACCEPT":
            return NodeResult(update=update)
        if verdict.action == "RETRY" and step.execution < self.rounds:
            return NodeResult(update=update, decision=Revise())
        raise StepFailed(f"The step {step.node} was not accepted: {verdict.feedback}")


def _outputs(given: Fields) -> Mapping[str, Any]:
    found = given.raw("outputs")
    if found is None:
        return {}
    if not isinstance(found, Mapping) or not 1 <= len(found) <= _MAX_OUTPUTS:
        given.note("outputs", f"expected an object of 1 to {_MAX_OUTPUTS} names, each with a JSON schema")
        return {}
    for name, schema in found.items():
        if not _KEY.fullmatch(name):
            given.note(f"outputs.{name}", "is not a name: letters, digits and _, at most 64")
        if not isinstance(schema, Mapping):
            given.note(f"outputs.{name}", 'expected a JSON schema, such as {"type": "string"}')
    return {name: thaw(schema) for name, schema in found.items() if isinstance(schema, Mapping)}
