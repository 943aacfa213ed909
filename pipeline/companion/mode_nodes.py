"""The nodes of the subgraph: the dispatcher, which goes to exactly one mode, and the six modes."""

from __future__ import annotations

from typing import Any, Final

from pipeline.agent.usage_metering import metered_text
from pipeline.companion.decision import DispatchDecision, Mode
from pipeline.companion.dispatcher import MOST_ANSWER_CHARS, AskModel, dispatch
from pipeline.companion.exercise_book import FALLBACK_LANGUAGE, LANGUAGES
from pipeline.companion.exercise_flow import (
    ExerciseTurn,
    cleared,
    continue_exercise,
    running_exercise,
    start_exercise,
)
from pipeline.companion.exercise_words import written
from pipeline.companion.memory_node import memory_lines, recalled
from pipeline.companion.mode_prompt import mode_reply
from pipeline.companion.prompt import system_of
from pipeline.companion.reply import Reply, fixed_reply, written_reply
from pipeline.companion.state import (
    DIAGNOSTICS,
    MESSAGE,
    PROGRESS,
    RESPONSE,
    ROUTING,
    milliseconds,
    progress_of,
    workflow_of,
)
from pipeline.graph.definition.decisions import Goto, Node, NodeResult, State
from pipeline.llm.client import LlmRequest
from pipeline.runtime.context import RunContext
from pipeline.safety.conversation_entries import entries_of
from pipeline.safety.ladder import EarlierEntry

GUIDED_EXERCISE: Final = "guided_exercise"
LANGUAGE: Final = "language"
"""In `progress`: the language of the fixed texts, once the person's words have shown it."""
_TAGS: Final = {"English": "en", "German": "de", "French": "fr", "Spanish": "es"}
_ENTRIES: Final = 12


async def dispatcher(state: State, context: RunContext) -> NodeResult:
    """Choose the mode, and go there. A decision that ends a running exercise clears it."""
    workflow_of(context)
    began, progress = context.clock.monotonic(), progress_of(state)
    state = await recalled(state, context)
    decision = await dispatch(
        state[MESSAGE],
        await _history(context),
        in_exercise=running_exercise(progress) is not None,
        memory_lines=memory_lines(state),
        ask=_asking(context),
        timeout_s=context.settings.llm_timeout_s,
    )
    stage = "closing" if decision.mode == "closing" else "open"
    changed: dict[str, Any] = {"intent": decision.mode, "stage": stage}
    changed |= cleared(progress) if decision.clears_exercise else {}
    if (language := _shown_language(decision)) and language != progress.get(LANGUAGE):
        changed[LANGUAGE] = language
    routing = {
        "response_style": decision.mode,
        "response_style_source": decision.source,
        "response_style_type": decision.type,
        "therapeutic_approach": decision.approach,
    }
    return NodeResult(
        update={
            ROUTING: routing,
            PROGRESS: changed,
            DIAGNOSTICS: {
                "dispatch_ms": milliseconds(context.clock, began),
                "dispatch_source": decision.source,
            },
        },
        decision=Goto(decision.mode),
    )


def mode_node(mode: Mode) -> Node[RunContext]:
    """The node of a mode."""
    if mode == GUIDED_EXERCISE:
        return guided_exercise

    async def answer(state: State, context: RunContext) -> NodeResult:
        began, progress = context.clock.monotonic(), progress_of(state)
        state = await recalled(state, context)
        fallback = mode_reply(
            mode, language=_language(state, context), said_before=max(0, progress.get("turn_count", 1) - 1)
        )
        reply = await written_reply(context, system_of(state, context, mode), fallback)
        return _answered(reply, mode, milliseconds(context.clock, began))

    answer.__name__ = mode
    return answer


async def guided_exercise(state: State, context: RunContext) -> NodeResult:
    """Begin an exercise, or do what the answer does to the running one. Its step is committed with the
    answer."""
    began, progress, words = context.clock.monotonic(), progress_of(state), state[MESSAGE]
    language, history = _language(state, context), await _history(context)
    if running_exercise(progress) is None:
        turn = start_exercise(words, history, state=progress, language=language)
    else:
        turn = continue_exercise(progress, words, history, language=language)
    turn = await written(turn, words, _asking(context), timeout_s=context.settings.llm_timeout_s)
    reply = await fixed_reply(context, turn.text)
    result = _answered(reply, GUIDED_EXERCISE, milliseconds(context.clock, began))
    response = {**result.update[RESPONSE], **_completed(turn)}
    diagnostics = {
        **result.update[DIAGNOSTICS],
        "exercise_event": turn.event,
        "exercise_transition": turn.type,
    }
    return NodeResult(update={RESPONSE: response, PROGRESS: dict(turn.delta), DIAGNOSTICS: diagnostics})


def _completed(turn: ExerciseTurn) -> dict[str, Any]:
    """What is to be remembered of an exercise that was completed."""
    if turn.fact is None:
        return {}
    return {"completed": {"object": turn.fact.object, "evidence": turn.fact.evidence}}


def _answered(reply: Reply, mode: Mode, took_ms: float) -> NodeResult:
    return NodeResult(
        update={
            RESPONSE: {
                "kind": mode,
                "text": reply.text,
                "should_persist_memory": True,
                "inferred_location": "",
                "found_resources": [],
                "closing_hint_shown": mode == "closing",
            },
            PROGRESS: {},
            DIAGNOSTICS: {
                "response_ms": took_ms,
                "response_by_model": reply.by_model,
                "prompt_tokens": reply.prompt_tokens,
                "completion_tokens": reply.completion_tokens,
            },
        }
    )


async def _history(context: RunContext) -> list[EarlierEntry]:
    return entries_of(await context.history.conversation(), context.scope.author.id, _ENTRIES)


def _asking(context: RunContext) -> AskModel | None:
    """The model as a judge; None for a small one, which judges worse than the fallback and takes long."""
    if not context.settings.judges:
        return None

    async def ask(request: LlmRequest) -> str:
        return await metered_text(request, context, most_chars=MOST_ANSWER_CHARS)

    return ask


def _shown_language(decision: DispatchDecision) -> str:
    """The language of the phrase that decided; empty where none did."""
    code = decision.type.partition(".")[0]
    return code if code in LANGUAGES else ""


def _language(state: State, context: RunContext) -> str:
    """The language of fixed texts: that of the person's words as far as it is known, else the agent's."""
    spoken = "" if context.speech is None else context.speech.language
    known = (progress_of(state).get(LANGUAGE, ""), spoken, _TAGS.get(context.settings.language, ""))
    return next((tag for tag in known if tag), FALLBACK_LANGUAGE)
