"""Signals to a real gateway, and a second gateway where one is running."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.gateway_process import GatewayProcess, slow_echo
from tests.support.store_file import stored_messages
from tests.support.web_client import WebChat

pytestmark = pytest.mark.crash

_LONG = " ".join(f"w{number}" for number in range(150))
"""3 s of words: they have to outlast the way of a signal, or of two, through a busy machine."""
_STOPPED_AT_ONCE = 130
_BAD_CONFIGURATION = 2


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    async with GatewayProcess(tmp_path, overrides=slow_echo(0.02)) as gateway:
        yield gateway


async def _in_the_middle_of_an_answer(gateway: GatewayProcess, chat: WebChat) -> str:
    """A long answer whose first words have arrived; its message_id."""
    await gateway.start()
    await chat.connect(gateway.url, gateway.token)
    await chat.send_text("c1", _LONG)
    message_id = await chat.accepted("c1")
    await chat.wait_for(lambda frame: frame["type"] == "event" and frame["event"]["type"] == "llm_token")
    return message_id


async def _until_it_stops(gateway: GatewayProcess, chat: WebChat) -> None:
    """The first signal has been taken in; the answer's words continue coming meanwhile."""
    while "Once more to stop at once" not in gateway.log():
        await chat.receive()


async def test_a_stop_lets_the_answer_finish_and_the_client_sees_it(gateway: GatewayProcess) -> None:
    async with WebChat() as chat:
        message_id = await _in_the_middle_of_an_answer(gateway, chat)
        gateway.terminate()
        assert (await chat.terminal(message_id)).text == f"You said: {_LONG}"
        assert await chat.read_to_the_end() == 1001
        assert await gateway.wait_exit() == 0
        assert stored_messages(gateway.store_path)[message_id].attempts == 1


async def test_while_it_stops_a_new_message_is_refused_and_counts_after_the_next_start(
    gateway: GatewayProcess,
) -> None:
    async with WebChat() as chat:
        await _in_the_middle_of_an_answer(gateway, chat)
        gateway.terminate()
        await _until_it_stops(gateway, chat)
        await chat.send_text("late", "are you there?")
        refusal = await chat.wait_for(
            lambda frame: frame["type"] == "problem" or frame.get("client_id") == "late"
        )
        assert (refusal["type"], refusal.get("code")) == ("problem", "unavailable")
        assert await gateway.wait_exit() == 0

        await gateway.start()
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("late", "are you there?")
        assert (await chat.terminal(await chat.accepted("late"))).text == "You said: are you there?"
        assert chat.seen.duplicates == 0


async def test_a_second_stop_ends_at_once_and_the_answer_comes_after_the_next_start(
    gateway: GatewayProcess,
) -> None:
    async with WebChat() as chat:
        message_id = await _in_the_middle_of_an_answer(gateway, chat)
        gateway.terminate()
        await _until_it_stops(gateway, chat)
        gateway.terminate()
        await chat.read_to_the_end()
        assert await gateway.wait_exit() == _STOPPED_AT_ONCE
        assert chat.seen.terminals == []

        await gateway.start()
        await chat.connect(gateway.url, gateway.token)
        assert (await chat.answer(message_id)).text == f"You said: {_LONG}"
        assert await gateway.stop() == 0
        stored = stored_messages(gateway.store_path)[message_id]
        assert (stored.outcome, stored.assistant_records, stored.attempts) == ("answered", 1, 2)


async def test_a_second_gateway_on_the_same_folder_is_refused_in_words(gateway: GatewayProcess) -> None:
    await gateway.start()
    async with GatewayProcess(gateway.folder, overrides=slow_echo(0.02)) as second:
        second.log_path = gateway.folder / "second.log"
        await second.spawn()
        assert await second.wait_exit() == _BAD_CONFIGURATION
        assert f"is in use by process {gateway.pid}" in second.log()
        assert "data.dir" in second.log()
    async with WebChat() as chat:
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("c1", "still there?")
        assert (await chat.terminal(await chat.accepted("c1"))).text == "You said: still there?"
    assert await gateway.stop() == 0


async def test_a_killed_gateway_does_not_keep_its_folder_locked(gateway: GatewayProcess) -> None:
    await gateway.start()
    token = gateway.token
    await gateway.kill()
    await gateway.start()
    assert gateway.token == token
    assert await gateway.stop() == 0
