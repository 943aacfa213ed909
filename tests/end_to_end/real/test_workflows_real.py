"""The workflow of examples/workflows runs with the embedded model, from the message to the approved answer.

Covers: pipeline/workflows/compiling.py, gateway/turns/run_command.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.gateway_process import GatewayProcess, free_port
from tests.support.models import require_models
from tests.support.web_client import Frame, WebChat

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(900)]

EXAMPLE = Path(__file__).parents[3] / "examples" / "workflows" / "triage.workflow.json"
_SETTINGS = (
    "llm.local.model=0.5b",
    "llm.max_tokens=80",
    "llm.temperature=0",
    "llm.timeout_s=600",
    "turn.timeout_s=900",
    'voice.transcriber="scripted:hello"',
    "agent.titles=false",
    f'agents.triage.graph="{EXAMPLE}"',
    'routes.1.channel="web"',
    'routes.1.agent="default"',
    'routes.1.also=["triage"]',
)


async def test_a_refund_waits_for_a_person_and_a_question_does_not(tmp_path: Path) -> None:
    models = f"models.dir={json.dumps(str(require_models()))}"
    async with (
        GatewayProcess(tmp_path, overrides=(models, *_SETTINGS), port=free_port(), executed=True) as gateway,
        WebChat() as chat,
    ):
        await gateway.start()
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("back", "/run triage I want my money back")
        accepted = await chat.accepted("back")
        asked = (await chat.wait_for(lambda frame: _asks(frame, accepted)))["event"]
        await chat.send_approval("yes", asked["interaction_id"], "approve")
        approved = await chat.terminal(await chat.accepted("yes"))
        assert approved.type == "response_complete", approved.text
        # What was asked about is what goes out, word for word.
        assert approved.text in asked["reasoning"]
        await chat.send_text("open", "/run triage When are you open?")
        answered = await chat.terminal(await chat.accepted("open"))
        assert answered.type == "response_complete", answered.text
        assert answered.text


def _asks(frame: Frame, message_id: str) -> bool:
    event = frame["event"] if frame["type"] == "event" else {}
    return event.get("type") == "approval_required" and event["message_id"] == message_id
