"""Bad input to a real process: each gets clear words, and the process lives on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.support.gateway_process import GatewayProcess
from tests.support.web_client import WebChat

HELLO: dict[str, Any] = {"type": "hello", "protocol": 1}


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    async with GatewayProcess(tmp_path) as process:
        await process.start()
        yield process
        await _still_answers(process)


async def _still_answers(gateway: GatewayProcess) -> None:
    async with WebChat() as chat:
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("final-check", "still there?")
        answer = await chat.answer(await chat.accepted("final-check"))
        assert answer.text == "You said: still there?"


async def _metrics(gateway: GatewayProcess) -> str:
    headers = {"Authorization": f"Bearer {gateway.token}"}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{gateway.url}/metrics", headers=headers) as response,
    ):
        return await response.text()


async def _exchange(
    gateway: GatewayProcess, *frames: str | bytes, hello: bool = True
) -> tuple[dict[str, Any], int | None]:
    """Send raw frames; the first problem that comes back, and the close code if one followed."""
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{gateway.url}/ws", origin=gateway.url) as socket,
    ):
        if hello:
            await socket.send_str(json.dumps(HELLO | {"token": gateway.token}))
            while json.loads((await socket.receive(timeout=60)).data)["type"] != "ready":
                pass
        for frame in frames:
            if isinstance(frame, bytes):
                await socket.send_bytes(frame)
            else:
                await socket.send_str(frame)
        await socket.send_str('{"type": "ping"}')
        problem: dict[str, Any] = {}
        async for message in socket:
            frame_back = json.loads(message.data)
            if frame_back["type"] == "pong":
                break
            if frame_back["type"] == "problem" and not problem:
                problem = frame_back
        return problem, socket.close_code


BAD_FRAMES = [
    ("not json at all", "bad_frame"),
    ("", "bad_frame"),
    ("[]", "bad_frame"),
    ("null", "bad_frame"),
    ("42", "bad_frame"),
    ('"text"', "bad_frame"),
    ("{}", "bad_frame"),
    ('{"type": 7}', "bad_frame"),
    ('{"type": "dance"}', "unknown_type"),
    ('{"type": "message"}', "bad_frame"),
    ('{"type": "message", "client_id": "a"}', "bad_frame"),
    ('{"type": "message", "client_id": "", "text": "x"}', "bad_frame"),
    ('{"type": "message", "client_id": "a b", "text": "x"}', "bad_frame"),
    ('{"type": "message", "client_id": 5, "text": "x"}', "bad_frame"),
    ('{"type": "message", "client_id": "a", "text": 5}', "bad_frame"),
    ('{"type": "message", "client_id": "a", "text": null}', "bad_frame"),
    ('{"type": "message", "client_id": "a", "text": "   "}', "empty_message"),
    (json.dumps({"type": "message", "client_id": "a", "text": "x" * 8001}), "text_too_long"),
    (json.dumps({"type": "message", "client_id": "a" * 101, "text": "x"}), "bad_frame"),
    ('{"type": "command", "client_id": "a", "name": "format-disk"}', "bad_frame"),
    ('{"type": "command", "client_id": "a"}', "bad_frame"),
    ('{"type": "approval", "client_id": "a", "interaction": "none", "choice": "yes"}', "refused"),
    ('{"type": "voice", "client_id": "a", "mime": "audio/webm", "size": -1}', "bad_frame"),
    ('{"type": "voice", "client_id": "a", "mime": "audio/webm", "size": "1"}', "bad_frame"),
    ('{"type": "voice", "client_id": "a", "mime": "audio/webm", "size": 99999999999}', "voice_too_large"),
    (b"bytes out of nowhere", "unexpected_binary"),
    ('{"type": "hello", "protocol": 1, "token": "x"}', "hello_twice"),
    ('{"type": "message", "client_id": "a", "text": "x", "text": ' + "[" * 5000 + "}", "bad_frame"),
]


@pytest.mark.parametrize(("frame", "code"), BAD_FRAMES)
async def test_a_bad_frame_gets_a_problem_and_the_connection_continues(
    shared_gateway: GatewayProcess, frame: str | bytes, code: str
) -> None:
    problem, closed = await _exchange(shared_gateway, frame)
    assert problem["code"] == code, problem
    assert len(problem["message"]) > 15
    assert closed is None
    await _still_answers_quietly(shared_gateway)


BAD_HELLOS = [
    ('{"type": "message", "client_id": "a", "text": "x"}', "hello_first", 4400),
    ('{"type": "hello", "protocol": 99, "token": "x"}', "wrong_protocol", 4400),
    ("garbage", "bad_frame", 4400),
    (b"\x00\x01", "", 4400),
]


@pytest.mark.parametrize(("frame", "code", "close"), BAD_HELLOS)
async def test_a_bad_opening_closes_with_its_code(
    shared_gateway: GatewayProcess, frame: str | bytes, code: str, close: int
) -> None:
    problem, closed = await _exchange(shared_gateway, frame, hello=False)
    assert closed == close
    assert not code or problem["code"] == code


async def test_guessing_tokens_keeps_the_right_one_not_out(gateway: GatewayProcess) -> None:
    seen = [
        (await _exchange(gateway, json.dumps(HELLO | {"token": f"guess-{n}"}), hello=False)) for n in range(6)
    ]
    assert [(problem["code"], closed) for problem, closed in seen] == [("wrong_token", 4401)] * 5 + [
        ("too_many_attempts", 4429)
    ]
    await _still_answers_quietly(gateway)
    failed = 'parlour_signins_failed_total{where="page"} 6.0'
    assert failed in await _metrics(gateway)


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example.org", "null", "https://127.0.0.1", "http://127.0.0.1.evil.org", "file://", None],
)
async def test_a_foreign_or_missing_origin_opens_no_socket(
    shared_gateway: GatewayProcess, origin: str | None
) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"{shared_gateway.url}/ws", origin=origin)
    assert refused.value.status == 403


@pytest.mark.parametrize("host", ["evil.example.org", "127.0.0.1:1", "localhost.evil.org"])
async def test_a_foreign_host_name_gets_no_page(shared_gateway: GatewayProcess, host: str) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.get(shared_gateway.url, headers={"Host": host}) as response,
    ):
        assert response.status == 403
        assert "server.public_origins" in await response.text()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[GatewayProcess]:
    """One for all tests that leave nothing in it."""
    async with GatewayProcess(tmp_path_factory.mktemp("gateway")) as process:
        await process.start()
        yield process


async def _still_answers_quietly(gateway: GatewayProcess) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{gateway.url}/readyz") as response,
    ):
        assert response.status == 200
