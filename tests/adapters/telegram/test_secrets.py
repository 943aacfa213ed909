"""The token stays out of every log line and every exception, whatever goes wrong."""

from __future__ import annotations

import asyncio
import logging
import traceback

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from telegram.error import TelegramError

from adapters.channel import Outgoing
from adapters.telegram.api import TelegramApi
from adapters.telegram.settings import TelegramOptions
from pipeline.domain.clock import ManualClock, SystemClock
from pipeline.domain.messages import MediaRef
from tests.adapters.telegram.harness import TelegramHarness, idle, turning
from tests.support.platforms.platform import Fault, FaultKind

KINDS: tuple[FaultKind, ...] = ("rate_limit", "error_before", "error_after", "drop", "refuse_format")


class Unpaused(SystemClock):
    """The pauses between two attempts take no time."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(0)


async def failing_calls(harness: TelegramHarness) -> list[str]:
    """What the errors of all kinds of calls look like, with their causes."""
    said: list[str] = []
    thread = harness.thread()
    (part,) = harness.adapter.render(Outgoing(text="hello"))
    for kind in KINDS:
        for method in ("sendMessage", "sendMessageDraft", "sendChatAction", "getFile"):
            harness.fake.faults.script.extend([Fault(method=method, kind=kind)] * 2)
            view = harness.adapter.open_view(thread, key="m_1:0", reply_handle="", native_id="")
            assert view is not None
            try:
                match method:
                    case "sendMessage":
                        await harness.adapter.post(thread, part, key="m_1:0")
                    case "sendMessageDraft":
                        await view.show(Outgoing(text="hello", unfinished=True))
                    case "sendChatAction":
                        await harness.adapter.typing(thread)
                    case _:
                        ref = MediaRef(channel="telegram", handle="file")
                        await harness.adapter.download(ref, max_bytes=10)
            except Exception as error:  # noqa: BLE001 - whatever it is, it must not say the token
                said.append("".join(traceback.format_exception(error)))
                said.append(harness.adapter.classify(error).message)
            harness.fake.faults.script.clear()
    return said


async def test_no_error_and_no_log_line_holds_the_token(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with idle(clock=Unpaused()) as harness:
        said = await failing_calls(harness)
        assert len(said) >= 2 * 4 * 4
        secret = harness.fake.token.split(":")[1]
        for words in [*said, caplog.text]:
            assert secret not in words
    assert "sendMessageDraft" in caplog.text


async def test_a_response_that_breaks_off_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def broken_off(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=b'{"ok": true, "result": [{"message": {"text": "my diagnosis')

    app = web.Application()
    app.router.add_route("*", "/{anything:.*}", broken_off)
    caplog.set_level(logging.DEBUG)
    async with TestServer(app) as server:
        settings = TelegramOptions(token=lambda: "42:secret", api_base=str(server.make_url("")).rstrip("/"))
        with pytest.raises(TelegramError, match="Invalid server response"):
            await TelegramApi(settings, ManualClock()).call("getUpdates", {})
    assert "getUpdates" in caplog.text
    assert "diagnosis" not in caplog.text


async def test_a_post_that_hangs_is_given_up_and_may_have_arrived() -> None:
    clock = ManualClock()
    async with idle(clock=clock) as harness:
        harness.fake.faults.script.append(Fault(method="sendMessage", kind="hang"))
        (part,) = harness.adapter.render(Outgoing(text="hello"))
        failures = []

        async def post() -> None:
            try:
                await harness.adapter.post(harness.thread(), part, key="m_1:0")
            except Exception as error:  # noqa: BLE001 - whatever it is, it must not say the token
                failures.append(harness.adapter.classify(error))

        async with asyncio.TaskGroup() as group:
            task = group.create_task(post())
            await turning(clock, harness.fake, task.done)
        (failure,) = failures
        assert (failure.kind, failure.maybe_delivered) == ("transient", True)
        assert harness.fake.bot_texts(harness.place) == ["hello"]
