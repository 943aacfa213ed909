"""Death around a crisis response: one answer and one record for each message."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from gateway.cli.main import main
from gateway.runtime.crash_labels import Label
from tests.support.gateway_process import GatewayProcess, slow_echo
from tests.support.platforms.telegram import FakeTelegram
from tests.support.web_client import WebChat

pytestmark = pytest.mark.crash

_NOTICE_LABELS: tuple[Label, ...] = ("turn-commit-after", "crisis-notice-queued")
_LABELS: tuple[Label, ...] = ("turn-commit-before", "turn-commit-after")


@pytest.mark.parametrize("label", _LABELS)
async def test_a_response_is_given_and_recorded_once_wherever_the_process_dies(
    tmp_path: Path, label: Label, capsys: pytest.CaptureFixture[str]
) -> None:
    async with GatewayProcess(tmp_path, overrides=slow_echo(0.01)) as gateway, WebChat() as chat:
        await gateway.start(crash_at=f"{label}:1")
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("c1", "I want to die")
        await chat.read_to_the_end()
        assert await gateway.wait_exit() == 137
        await gateway.start()
        await chat.connect(gateway.url, gateway.token, after=0)
        await chat.send_text("c1", "I want to die")
        answer = await chat.answer(await chat.accepted("c1"))
        assert answer.text.startswith("Thank you for telling me.")
        await gateway.stop()
    capsys.readouterr()
    listed = ("crises", "--json", "--set", f'data.dir="{gateway.store_path.parent}"')
    assert await asyncio.to_thread(main, listed) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["level"], one["reason"]) for one in records] == [(2, "en.wish_to_die")]


@pytest.mark.parametrize("label", _NOTICE_LABELS)
async def test_the_operator_gets_one_notice_wherever_the_process_dies(tmp_path: Path, label: Label) -> None:
    folder = tmp_path / "platform"
    folder.mkdir()
    async with FakeTelegram() as telegram, WebChat() as chat:
        place = telegram.private_chat(telegram.person("operator"))
        notice = ("safety.notice.channel=telegram", f'safety.notice.chat="{place.chat}"')
        overrides = (*telegram.overrides(folder), *notice, *slow_echo(0.01))
        async with GatewayProcess(tmp_path, overrides=overrides) as gateway:
            await gateway.start(crash_at=f"{label}:1")
            await chat.connect(gateway.url, gateway.token)
            await chat.send_text("c1", "I want to die")
            await chat.read_to_the_end()
            assert await gateway.wait_exit() == 137
            await gateway.start()
            await telegram.until(lambda: len(telegram.bot_texts(place)) > 0)
            await chat.connect(gateway.url, gateway.token, after=0)
            await chat.send_text("c2", "what is the capital of Peru?")
            await chat.answer(await chat.accepted("c2"))
            (shown,) = telegram.bot_texts(place)
            assert "level 2" in shown
            await gateway.stop()
