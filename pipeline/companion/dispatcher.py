"""Choose the mode of a message: by phrases, by a model where no phrase fits, by a rule where no model
answers.

A model is asked once per message at most, and what it says is checked against rules that it may not
override. That it fails is logged, and never an error for the person.
"""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pipeline.companion.decision import APPROACHES, KEEPS_EXERCISE, MODES, DispatchDecision
from pipeline.companion.dispatch_rules import (
    asks_exercise,
    asks_tips,
    dispatch_by_rules,
    fallback,
    in_distress,
)
from pipeline.domain.chat import ChatMessage
from pipeline.domain.errors import ModelError
from pipeline.domain.json_schema import JsonSchema
from pipeline.llm.client import LlmRequest
from pipeline.llm.structured import structured
from pipeline.safety.ladder import EarlierEntry

_log = logging.getLogger(__name__)

AskModel = Callable[[LlmRequest], Awaitable[str]]
"""One call of the model: the whole text of its answer, counted in the turn's budget. With a run's context:
`lambda request: metered_text(request, context, most_chars=MOST_ANSWER_CHARS)`. Raises ModelError."""
MOST_ANSWER_CHARS: Final = 4_000
WINDOW: Final = 6
"""Earlier entries that the model is shown."""
MEMORY_LINES: Final = 3
"""Lines of what is remembered that the model is shown, at most."""
_MOST_ENTRY_CHARS: Final = 600
_MOST_MESSAGE_CHARS: Final = 2_000
_MOST_REASONING_CHARS: Final = 300
_SCHEMA: Final = JsonSchema(
    name="mode_of_the_message",
    schema={
        "type": "object",
        "properties": {
            "mode": {"type": "string", "enum": list(MODES)},
            "approach": {"type": "string", "enum": list(APPROACHES)},
            "reasoning": {"type": "string"},
        },
        "required": ["mode"],
    },
)
_PROMPT: Final = Path(__file__).with_name("dispatch_prompt.txt")
_IN_EXERCISE: Final = (
    "An exercise is running, and the newest message is a question. Choose guided_exercise if it belongs to"
    " the exercise, clarifying or psychoeducation if it interrupts it, another mode only if the person has"
    " left it."
)


async def dispatch(
    message: str,
    history: Sequence[EarlierEntry] = (),
    *,
    in_exercise: bool = False,
    memory_lines: Sequence[str] = (),
    ask: AskModel | None = None,
    timeout_s: float = 20.0,
) -> DispatchDecision:
    """The mode of `message`. Raises only what `ask` raises beside ModelError.

    `history`: what was said before, oldest first. `in_exercise`: whether one is running. `memory_lines`:
    what is remembered. `ask`: None where there is no model. `timeout_s`: as `LlmRequest.timeout_s`.
    """
    ruled = dispatch_by_rules(message, history, in_exercise=in_exercise)
    if ruled is not None:
        return ruled
    if ask is not None:
        try:
            judged = await _by_model(message, history, in_exercise, memory_lines, ask, timeout_s)
        except ModelError as error:
            _log.warning("no model chose the mode; rules do", extra={"error": error.code})
        else:
            return _ending(guarded(judged, message, history, in_exercise=in_exercise), in_exercise)
    if in_exercise:
        return DispatchDecision(mode="guided_exercise", source="fallback", type="active_exercise")
    return fallback(message)


async def _by_model(
    message: str,
    history: Sequence[EarlierEntry],
    in_exercise: bool,  # noqa: FBT001 - private, as the parameter of dispatch
    memory_lines: Sequence[str],
    ask: AskModel,
    timeout_s: float,
) -> DispatchDecision:
    async def asked(messages: tuple[ChatMessage, ...]) -> str:
        return await ask(
            LlmRequest(
                messages=messages, schema=_SCHEMA, max_tokens=200, temperature=0.0, timeout_s=timeout_s
            )
        )

    messages = (
        ChatMessage(role="system", content=instructions()),
        ChatMessage(role="user", content=_shown(message, history, in_exercise, memory_lines)),
    )
    answer = await structured(messages, _SCHEMA, asked)
    return DispatchDecision(
        mode=answer["mode"],
        source="model",
        type="model",
        approach=answer.get("approach", "none"),
        reasoning=str(answer.get("reasoning", ""))[:_MOST_REASONING_CHARS],
    )


def guarded(
    judged: DispatchDecision, message: str, history: Sequence[EarlierEntry], *, in_exercise: bool
) -> DispatchDecision:
    """The model's verdict, unless rules know better."""
    if judged.mode == "guided_exercise" and not in_exercise:
        if asks_tips(message):
            return replace(judged, mode="psychoeducation", type="model_guarded_tips")
        if in_distress(message) and not asks_exercise(message, history):
            return replace(judged, mode="supportive", type="model_guarded_distress")
    if judged.mode == "closing" and all(entry.said_by == "person" for entry in history):
        # Nothing has been said yet that could end.
        return replace(judged, mode="supportive", type="model_guarded_closing")
    return judged


def _ending(decision: DispatchDecision, in_exercise: bool) -> DispatchDecision:  # noqa: FBT001 - as _by_model
    return replace(decision, clears_exercise=in_exercise and decision.mode not in KEEPS_EXERCISE)


def _shown(
    message: str,
    history: Sequence[EarlierEntry],
    in_exercise: bool,  # noqa: FBT001 - as _by_model
    memory_lines: Sequence[str],
) -> str:
    earlier = [{"by": entry.said_by, "text": entry.text[:_MOST_ENTRY_CHARS]} for entry in history[-WINDOW:]]
    remembered = [line[:_MOST_ENTRY_CHARS] for line in memory_lines[:MEMORY_LINES]]
    parts = [_IN_EXERCISE] if in_exercise else []
    if remembered:
        parts.append(f"<remembered>\n{_as_data(remembered)}\n</remembered>")
    if earlier:
        parts.append(f"<earlier>\n{_as_data(earlier)}\n</earlier>")
    parts.append(f"<newest>\n{_as_data(message[:_MOST_MESSAGE_CHARS])}\n</newest>")
    return "\n".join(parts)


@functools.cache
def instructions() -> str:
    """What the model is asked to decide."""
    return _PROMPT.read_text(encoding="utf-8").strip()


def _as_data(value: Any) -> str:
    """The value as JSON without any `<`, so that it cannot end its own marks."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")
