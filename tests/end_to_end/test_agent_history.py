"""How much of a conversation each agent's model sees, on the page and on a platform.

Covers: gateway/app/llm.py, pipeline/agent/model_messages.py.
"""

from __future__ import annotations

from pathlib import Path

from pipeline.llm.client import LlmRequest
from pipeline.llm.scripted import ScriptedLlm
from tests.support.gateway_process import free_port
from tests.support.harness import open_gateway
from tests.support.platforms.telegram import FakeTelegram
from tests.support.web_client import WebChat

_MOST = 300
_MESSAGES = [f"n{number}{' word' * 80}" for number in range(4)]
"""With their answers about 220 tokens each."""


def _history(request: LlmRequest) -> int:
    """The tokens of a request between the system prompt and the newest message."""
    return sum(message.tokens for message in request.messages[1:-1])


async def test_each_agents_model_sees_as_much_of_a_conversation_as_its_history_tokens(tmp_path: Path) -> None:
    llm, port = ScriptedLlm.echo(), free_port()
    settings = (
        *(
            "channels.web.enabled=true",
            f"server.port={port}",
            "channels.telegram.rate=0",
            "channels.telegram.previews=false",
        ),
        *(f"agents.brief.history_tokens={_MOST}", "routes.1.channel=telegram", "routes.1.agent=brief"),
    )
    async with FakeTelegram() as telegram, WebChat() as page:
        own = telegram.overrides(tmp_path)
        async with open_gateway(tmp_path / "data", *settings, *own, llm=llm):
            ann = telegram.person("ann")
            chat = telegram.private_chat(ann)
            for text in _MESSAGES:
                await telegram.say(chat, ann, text)
                await telegram.until(lambda: f"You said: {text}" in telegram.bot_texts(chat))  # noqa: B023 - used before the next turn
            on_telegram = [_history(one) for one in llm.requests if one.messages[-1].content in _MESSAGES]
            del llm.requests[:]
            token = (tmp_path / "data" / "web-token").read_text(encoding="ascii").strip()
            await page.connect(f"http://127.0.0.1:{port}", token)
            for text in _MESSAGES:
                await page.send_text(text[:2], text)
                await page.answer(await page.accepted(text[:2]))
            on_page = [_history(one) for one in llm.requests if one.messages[-1].content in _MESSAGES]
    assert len(on_telegram) == len(on_page) == len(_MESSAGES)
    assert 0 < max(on_telegram) <= _MOST, on_telegram
    assert on_page == sorted(set(on_page)), "the default agent's model sees all of it"
    assert on_page[-1] > 1.5 * _MOST
