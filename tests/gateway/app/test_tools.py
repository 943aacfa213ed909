"""What the tools are put together with ends with the gateway."""

from __future__ import annotations

import pytest

from gateway.app.tools import Tooling
from gateway.ingress.reminders import ReminderScheduler
from gateway.interactions.approvals import ApprovalService
from gateway.storage.memory import MemoryStore
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import ModelUnavailable
from pipeline.domain.messages import ReminderDue
from pipeline.llm.client import LlmRequest
from pipeline.llm.scripted import ScriptedLlm
from pipeline.runtime.services import PipelineServices


async def test_the_cheaper_model_is_closed_with_the_tools() -> None:
    store, clock, cheaper = MemoryStore(), ManualClock(), ScriptedLlm.echo()
    tooling = Tooling(
        surroundings=PipelineServices(cheaper=cheaper),
        approvals=ApprovalService(store=store, clock=clock, approval_s=5),
        reminders=ReminderScheduler(
            store=store, clock=clock, wake=lambda _thread: None, still_allowed=_anybody
        ),
        gate=None,
    )
    await tooling.close()
    request = LlmRequest(messages=(ChatMessage(role="user", content="hi"),), max_tokens=5, timeout_s=5)
    with pytest.raises(ModelUnavailable, match="closed"):
        _ = [item async for item in cheaper.stream(request)]


async def _anybody(_due: ReminderDue) -> bool:
    return True
