"""Write a mode's reply with the model, streamed as it arrives; words of the mode's own where the model
fails."""

from __future__ import annotations

import logging

from pipeline.agent.model_messages import build_messages
from pipeline.agent.pictures import with_pictures
from pipeline.agent.usage_metering import UsageMeter
from pipeline.companion.state import workflow_of
from pipeline.domain.errors import ModelError
from pipeline.domain.frozen import dataclass
from pipeline.graph.execution.step import current_step
from pipeline.intake.cleaning import clean_text
from pipeline.llm.client import LlmItem, LlmRequest, TextDelta, ToolAsked
from pipeline.llm.empty_answer_retry import read_answer
from pipeline.runtime.context import RunContext

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply, and what it used."""

    text: str
    by_model: bool
    prompt_tokens: int = 0
    completion_tokens: int = 0


async def written_reply(context: RunContext, system: str, fallback: str) -> Reply:
    """The model's reply to the message under the instruction `system`. `fallback` is shown, below what has
    been shown already, if the model fails. Raises no error of the model."""
    settings = context.settings
    messages, pictures = await with_pictures(context, await build_messages(context, {}, system=system))
    request = LlmRequest(
        messages=messages,
        pictures=pictures,
        asked=clean_text(context.text),
        max_tokens=settings.max_answer_tokens,
        temperature=settings.temperature,
        timeout_s=settings.llm_timeout_s,
        retries=settings.max_retries,
    )
    # A second attempt shows nothing while it is written: people have seen a part of the first.
    stream = _Stream(request, context, silent=current_step().attempt > 1)
    try:
        async with stream.meter:
            await read_answer(workflow_of(context).llm_client, request, context.clock, stream.take)
            await stream.end()
    except ModelError as error:
        _log.warning("a mode answers without the model", extra={"code": error.code})
    if stream.shown.strip() and stream.meter.finished is not None:
        used = stream.meter.finished
        return Reply(
            text=stream.shown.strip(),
            by_model=True,
            prompt_tokens=used.prompt_tokens,
            completion_tokens=used.completion_tokens,
        )
    gap = "\n\n" if stream.shown.strip() else ""
    await context.on_text(gap + fallback)
    return Reply(text=f"{stream.shown.strip()}{gap}{fallback}", by_model=False)


async def fixed_reply(context: RunContext, text: str) -> Reply:
    """A reply of fixed words, shown at once."""
    await context.on_text(text)
    return Reply(text=text, by_model=False)


class _Stream:
    """One answer of the model, shown without secrets while it arrives."""

    def __init__(self, request: LlmRequest, context: RunContext, *, silent: bool) -> None:
        self._silent = silent
        self.meter = UsageMeter(request, context)
        self.shown = ""
        self._context = context
        self._safe = context.redactor.stream()

    async def take(self, item: LlmItem) -> None:
        if isinstance(item, TextDelta):
            self.meter.parts.append(item.text)
            await self._show(self._safe.feed(item.text))
        elif not isinstance(item, ToolAsked):
            self.meter.finished = item

    async def end(self) -> None:
        await self._show(self._safe.finish())

    async def _show(self, text: str) -> None:
        if text:
            self.shown += text
            if not self._silent:
                await self._context.on_text(text)
