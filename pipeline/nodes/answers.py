"""The kind `reply`, and how a node adds to the answer that the person reads."""

from __future__ import annotations

from typing import Any

from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.spec import NodeSpec
from pipeline.graph.documents.fields import Fields
from pipeline.nodes.foreign import note_foreign_results
from pipeline.nodes.templates import Template, template_field
from pipeline.runtime.context import RunContext


async def answered(text: str, state: State, context: RunContext) -> dict[str, Any]:
    """Show `text` below what the run has answered so far; returns the update of the key `agent`."""
    note_foreign_results(state, context)
    text = context.redactor.text(text).strip()
    earlier = state.get("agent", {}).get("answer", "")
    if earlier:
        await context.on_earlier(earlier)
    if text:
        await context.on_text(f"\n\n{text}" if earlier else text)
    answer = "\n\n".join(part for part in (earlier, text) if part)
    return {"agent": {"status": "done", "answer": answer, "updated_at": context.clock.now()}}


def reply_kind(given: Fields) -> NodeSpec[RunContext]:
    """Shows the template `text` to the person, as a part of the answer."""
    return NodeSpec(run=_Reply(text=template_field(given, "text")), writes=("agent",), goes_to=())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reply:
    text: Template

    async def __call__(self, state: State, context: RunContext) -> NodeResult:
        return NodeResult(update=await answered(self.text.render(state), state, context))
