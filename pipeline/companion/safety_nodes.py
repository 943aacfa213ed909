"""The crisis nodes of the companion: judge the message before anything else, answer in danger, log that.

No node before `load_memory` reads memory, and the crisis branch has none that does.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from pipeline.companion.exercise_flow import cleared
from pipeline.companion.state import (
    CRISIS,
    DIAGNOSTICS,
    HISTORY,
    MESSAGE,
    PROGRESS,
    RESPONSE,
    ROUTING,
    SAID,
    TRANSCRIPT,
    milliseconds,
    owner_of,
    progress_of,
    workflow_of,
)
from pipeline.domain.clock import Clock
from pipeline.graph.definition.decisions import Goto, NodeResult, State
from pipeline.intake.cleaning import clean_text
from pipeline.runtime.context import RunContext
from pipeline.runtime.workflow_context import CRISIS_LOG
from pipeline.safety.assessment import CLEAR, GATE_FAILED, CrisisAssessment, plain_assessment, read_assessment
from pipeline.safety.replies import STATIC_REPLY

_log = logging.getLogger(__name__)

CRISIS_RESPONSE: Final = "crisis_response"
LOAD_MEMORY: Final = "load_memory"
_FAILED: Final = CrisisAssessment(level=CLEAR, confidence="low", reason=GATE_FAILED, path="failed")


async def crisis_gate(state: State, context: RunContext) -> NodeResult:
    """Assess the message, and go to the crisis branch or on to memory.

    The state begins here: the person's entry of `history` and `transcript`, `crisis`, `routing`, the number
    of the turn. A running exercise ends in a crisis. Raises NoWorkflow and NoOwner.
    """
    flow, began, words = workflow_of(context), context.clock.monotonic(), clean_text(context.text)
    owner_of(context)
    assessment = _FAILED if flow.crisis_gate is None else await flow.crisis_gate.assess()
    needs_help = assessment.needs_crisis_response
    entry = {"role": "user", "content": words}
    scope, before = context.scope, progress_of(state)
    progress: dict[str, Any] = {
        "turn_count": before.get("turn_count", 0) + 1,
        "crisis_level_max": max(assessment.level, before.get("crisis_level_max", 0)),
    }
    if needs_help:
        progress |= cleared(before)
    return NodeResult(
        update={
            MESSAGE: words,
            SAID: "" if flow.crisis_gate is None else flow.crisis_gate.words,
            "channel": scope.thread.channel,
            "user_id": scope.person or scope.author.id,
            "session_id": scope.session_id,
            "installed_skills": [one.name for one in context.skills.summaries()],
            HISTORY: [entry],
            TRANSCRIPT: [entry],
            CRISIS: plain_assessment(assessment),
            PROGRESS: progress,
            ROUTING: _routing(assessment),
            DIAGNOSTICS: _diagnostics(assessment, context.clock, began),
        },
        decision=Goto(CRISIS_RESPONSE if needs_help else LOAD_MEMORY),
    )


def _routing(assessment: CrisisAssessment) -> dict[str, Any]:
    routing: dict[str, Any] = {
        "route": "crisis" if assessment.needs_crisis_response else "therapeutic",
        "response_style": "",
        "crisis_override_kind": assessment.override,
        "crisis_classifier_path": assessment.path,
        "crisis_llm_failure_occurred": assessment.llm_failed,
    }
    if assessment.needs_crisis_response:
        routing |= {"response_style": "safety_check", "response_style_source": "crisis_gate"}
    return routing


def _diagnostics(assessment: CrisisAssessment, clock: Clock, began: float) -> dict[str, Any]:
    return {
        "crisis_gate_ms": milliseconds(clock, began),
        "crisis_level": assessment.level,
        "crisis_classifier_path": assessment.path,
    }


async def crisis_response(state: State, context: RunContext) -> NodeResult:
    """Write the crisis response; fixed words if it cannot be made, and after a gate that failed."""
    flow, found = workflow_of(context), state.get(CRISIS)
    text, location = STATIC_REPLY, ""
    resources: tuple[str, ...] = ()
    if found is not None and flow.crisis_gate is not None:
        given = await flow.crisis_gate.help(read_assessment(found))
        text, location, resources = given.text, given.location, given.resources
    return NodeResult(
        update={
            RESPONSE: {
                "kind": "crisis",
                "text": text,
                "should_persist_memory": False,
                "inferred_location": location,
                "found_resources": list(resources),
                "closing_hint_shown": False,
            }
        }
    )


async def crisis_log(state: State, context: RunContext) -> NodeResult:
    """Put the entry of the log of crises into the state; the turn's commit stores it, once.

    An entry that cannot be made is an error in the log of the gateway, and the turn continues.
    """
    found = state.get(CRISIS)
    assessment = _FAILED if found is None else read_assessment(found)
    try:
        entry = workflow_of(context).crisis_log_backend(assessment)
    except Exception:  # noqa: BLE001 - whatever fails, the person has been answered
        _log.exception("the entry of a crisis cannot be made")
        entry = plain_assessment(_FAILED)
    return NodeResult(update={CRISIS_LOG: dict(entry)})
