"""Death while the evaluator judges: its call has counted, and the action is judged again and done once.

Covers: gateway/shield/evaluator_client.py, gateway/storage/sqlite/shield.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.evaluators import evaluating
from tests.support.gateway_process import GatewayProcess
from tests.support.openai_server import Behaviour, FakeOpenAiServer
from tests.support.store_file import integrity
from tests.support.tool_talk import executions, outcome, think, tool_settings, wish
from tests.support.web_client import WebChat

pytestmark = pytest.mark.crash

_NAME = "n1"


async def test_a_call_that_a_kill_cuts_off_is_used_up_and_the_action_is_done_once(tmp_path: Path) -> None:
    async with FakeOpenAiServer(brain=think) as model, FakeOpenAiServer() as judge:
        policy = tmp_path / "policy.toml"
        policy.write_text('[[verify]]\nname = "write-files"\naction_types = ["write_file"]\ntier = 2\n')
        settings = (
            *tool_settings(model.api_base, tmp_path),
            f"shield.policy={policy}",
            "shield.evaluator=openai_compatible/judge",
            f"shield.evaluator_api_base={judge.api_base}",
            "shield.evaluator_per_day=1",
        )
        judge.default = Behaviour(hang_before=True)
        async with GatewayProcess(tmp_path, overrides=settings) as gateway, WebChat() as chat:
            await gateway.start()
            await chat.connect(gateway.url, gateway.token)
            await chat.send_text("c1", wish("file", _NAME))
            message_id = await chat.accepted("c1")
            await judge.arrived.wait()
            await gateway.kill()
            assert executions(gateway.folder, gateway.store_path).total() == 0

            judge.brain = evaluating()
            await gateway.start()
            await chat.connect(gateway.url, gateway.token)
            asked = await _allowed_until_answered(chat)
            answer = await chat.answer(message_id)
            assert await gateway.stop() == 0
            assert integrity(gateway.store_path) == "ok"
            # The day's one call is used up, so a person was asked.
            assert (asked, len(judge.requests)) == (1, 1)
            assert outcome("file", _NAME, answer.text) == "done"
            assert executions(gateway.folder, gateway.store_path).total() == 1


async def _allowed_until_answered(chat: WebChat) -> int:
    """How many questions there are until the answer; each is allowed."""
    asked: set[str] = set()
    while not any(one.role == "assistant" for one in chat.seen.lines):
        # Also those that came before `ready`: a resumed turn may ask before the client is connected.
        for question in set(chat.seen.questions) - asked:
            asked.add(question)
            await chat.send_approval(f"yes-{question}", question, "Allow")
        await chat.receive()
    return len(asked)
