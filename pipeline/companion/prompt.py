"""The system prompt of a mode for one turn: who the companion is, the mode, what is remembered, and the
rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pipeline.companion.decision import Approach, Mode
from pipeline.companion.memory_node import memory_lines
from pipeline.companion.mode_prompt import mode_prompt
from pipeline.companion.state import CRISIS, MEMORY, ROUTING
from pipeline.graph.definition.decisions import State
from pipeline.runtime.context import RunContext

_NAME: Final = "Your name is {name}. If you are asked who you are, say that you are {name}, a chat bot."
_LANGUAGE: Final = "Answer in {language}, unless the person writes in another language."
_SPOKEN: Final = "The newest message was spoken: words may be misheard."
_RULES: Final = (
    "# How This Person Wants To Be Answered\nFollow these where they agree with everything above.\n\n{text}"
)


def rules_of(state: State) -> Sequence[str]:
    """The person's rules for answers."""
    found: Sequence[str] = state.get(MEMORY, {}).get("procedural_rules", ())
    return found


def system_of(state: State, context: RunContext, mode: Mode) -> str:
    """The whole system message of an answer in `mode`."""
    routing: Mapping[str, Any] = state.get(ROUTING, {})
    approach: Approach = routing.get("therapeutic_approach", "none")
    system = mode_prompt(
        mode,
        identity=_identity(context),
        approach=approach,
        memory_lines=memory_lines(state),
        level_one=bool(state.get(CRISIS, {}).get("needs_clarification")),
        proactive_recall=bool(state.get(MEMORY, {}).get("proactive_recall_enabled")),
    )
    rules = "\n".join(f"- {' '.join(rule.split())}" for rule in rules_of(state))
    return f"{system}\n\n{_RULES.format(text=rules)}" if rules else system


def _identity(context: RunContext) -> str:
    settings, texts = context.settings, context.workspace.texts(context.scope)
    parts = [texts.identity.strip() or settings.system_prompt, _NAME.format(name=settings.bot_name)]
    if settings.language:
        parts.append(_LANGUAGE.format(language=settings.language))
    if context.speech is not None:
        parts.append(_SPOKEN)
    identity = " ".join(parts)
    return f"{identity}\n\n{texts.soul.strip()}" if texts.soul.strip() else identity
