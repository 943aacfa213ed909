"""Questions to the model about a playbook: a task for a sub-agent, a route, yes or no, a verdict.

Each answer is an effect of the step, so a resumed run does not ask again.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from pipeline.agent.usage_metering import metered_text
from pipeline.domain.chat import ChatMessage
from pipeline.graph.execution.step import current_step
from pipeline.llm.client import LlmRequest
from pipeline.nodes.templates import DATA_NOTE
from pipeline.playbooks.document import Router
from pipeline.runtime.context import RunContext

_MET: Final = re.compile(r"met\b", re.IGNORECASE)
_DIRECTS: Final = (
    "You direct the work of a sub-agent that knows nothing but what you write to it. Write its whole task,"
    " and nothing else."
)
_JUDGES: Final = (
    "You judge the work of a sub-agent. Answer with exactly MET, or with NOT MET: and the reason in one"
    " sentence."
)
_ROUTES: Final = (
    "You choose the next step of a process. Answer with exactly one of the labels that you are given, and"
    " nothing else."
)
_DECIDES: Final = "You decide the next step of a process. Answer with exactly yes or no, and nothing else."
_SHORT: Final = 60
"""Tokens of an answer that is a word."""
_QUOTES: Final = " \t\r\n.\"'`*“”„"


async def ask(key: str, system: str, user: str, context: RunContext, *, max_tokens: int = 0) -> str:
    """The model's answer, without secrets. Raises the model's errors, and StorageError."""
    settings = context.settings
    request = LlmRequest(
        messages=(
            ChatMessage(role="system", content=f"{system}\n\n{DATA_NOTE}"),
            ChatMessage(role="user", content=user),
        ),
        max_tokens=max_tokens or settings.max_answer_tokens,
        temperature=0.0,
        timeout_s=settings.llm_timeout_s,
        retries=settings.max_retries,
    )

    async def call() -> str:
        return context.redactor.text(await metered_text(request, context)).strip()

    return str(await current_step().effect(f"ask {key}", call, repeatable=True))


async def task_by(before: str, draft: str, context: RunContext) -> str:
    """A sub-agent's task as the model writes it by `before`; `draft` is what the document says it is."""
    words = f"{before}\n\nWhat the task is about:\n\n{draft}"
    return await ask("before", _DIRECTS, words, context) or draft


async def verdict_on(after: str, criteria: str, result: str, context: RunContext) -> tuple[bool, str]:
    """Whether a result is accepted, and the verdict. An answer that is neither counts as no."""
    parts = [after, f"It succeeds if: {criteria}" if criteria else "", f"The result:\n\n{result}"]
    said = await ask("after", _JUDGES, "\n\n".join(part for part in parts if part), context, max_tokens=300)
    return _MET.match(said.strip(_QUOTES)) is not None, said


async def route_by(router: Router, words: str, before: str, context: RunContext) -> int | None:
    """The number of the route that the model names; None for an answer that names none."""
    listed = [f"- {way.label}{': ' + way.description if way.description else ''}" for way in router.routes]
    parts = [
        words,
        f"The step before has given:\n\n{before}" if before else "",
        "Labels:\n" + "\n".join(listed),
    ]
    user = "\n\n".join(part for part in parts if part)
    said = (await ask("route", _ROUTES, user, context, max_tokens=_SHORT)).strip(_QUOTES).lower()
    labels = [way.label.strip(_QUOTES).lower() for way in router.routes]
    return labels.index(said) if said in labels else None


async def yes_or_no(words: str, before: str, context: RunContext) -> Literal["yes", "no", ""]:
    """The model's decision; empty for an answer that is neither."""
    user = "\n\n".join(
        part for part in (words, f"The step before has given:\n\n{before}" if before else "") if part
    )
    said = (await ask("decide", _DECIDES, user, context, max_tokens=_SHORT)).strip(_QUOTES).lower()
    return "yes" if said in ("yes", "true") else "no" if said in ("no", "false") else ""
