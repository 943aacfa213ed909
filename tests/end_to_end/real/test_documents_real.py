"""The three documents of examples/graphs answer with the embedded model, on the page and in Telegram.

Covers: pipeline/nodes/document_graph.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.gateway_process import GatewayProcess, free_port, up
from tests.support.models import require_models
from tests.support.platforms.telegram import FakeTelegram
from tests.support.web_client import WebChat

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(1800)]

EXAMPLES = Path(__file__).parents[3] / "examples" / "graphs"
_PATIENCE_S = 600.0
_SETTINGS = (
    "llm.max_tokens=60",
    "llm.temperature=0",
    "llm.timeout_s=600",
    "turn.timeout_s=900",
    'voice.transcriber="scripted:hello"',
    "agent.titles=false",
    'routes.1.channel="telegram"',
    'routes.1.agent="care"',
    'routes.2.channel="web"',
    'routes.2.also=["study"]',
)


def _patient(folder: Path, agent: str, name: str) -> str:
    """The setting that gives `agent` the example `name`, without the example's limit on the time of a run."""
    document = json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    # A machine that also does other work needs minutes for a run; what is tested is the answer.
    document["limits"] = document.get("limits", {}) | {"max_seconds": 800}
    (folder / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    return f'{agent}.graph="{folder / f"{name}.json"}"'


async def test_each_document_answers(tmp_path: Path) -> None:
    models = f"models.dir={json.dumps(str(require_models()))}"
    documents = (
        _patient(tmp_path, "agent", "support"),
        _patient(tmp_path, "agents.study", "research"),
        _patient(tmp_path, "agents.care", "companion"),
    )
    async with FakeTelegram(lenient=True) as telegram:
        overrides = (models, "llm.local.model=0.5b", *_SETTINGS, *documents, *telegram.overrides(tmp_path))
        async with (
            GatewayProcess(tmp_path, overrides=overrides, port=free_port(), executed=True) as gateway,
            WebChat() as chat,
        ):
            await gateway.start()
            await up(gateway, "telegram")
            await chat.connect(gateway.url, gateway.token)
            # Its words differ from processor to processor; that each path has an answer does not.
            await _answered(chat, "support", "How long is the warranty of the kettle?")
            await chat.send_text("choose", "/agent study")
            await chat.wait_for(lambda frame: frame["type"] == "entry" and frame["role"] == "session")
            await _answered(chat, "research", "Why is the sky blue?")
            ann = telegram.person("ann")
            place = telegram.private_chat(ann)
            await telegram.say(place, ann, "My cat is ill and I am sad.")
            await telegram.until(lambda: bool(telegram.bot_texts(place)), timeout_s=_PATIENCE_S)


async def _answered(chat: WebChat, client_id: str, text: str) -> None:
    await chat.send_text(client_id, text)
    terminal = await chat.terminal(await chat.accepted(client_id))
    assert terminal.type == "response_complete", terminal.text
    assert terminal.text
