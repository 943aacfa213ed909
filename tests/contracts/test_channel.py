"""What every channel adapter promises the gateway. A new adapter adds one factory to ADAPTERS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

from adapters.channel import ChannelAdapter, ChannelHealth, FailureKind, OutboundReply, Receipt
from adapters.console.adapter import THREAD, ConsoleAdapter, ConsoleSettings
from adapters.web.inbound import thread_of
from pipeline.domain import errors
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import LlmToken, PipelineEvent, ResponseComplete
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import MediaRef
from tests.adapters.fakes import MemoryInbox, MemoryTimeline, every_event
from tests.adapters.web.harness import CHAT, Page, WebHarness, serving

MESSAGE = "m_00000000000000000001"


@dataclass(kw_only=True)
class Stand:
    """An adapter in place: running, with someone who watches `thread`."""

    adapter: ChannelAdapter
    thread: ThreadKey
    stop: Callable[[], object]
    visible: Callable[[], Any]
    """Awaitable of the answers a person sees, in order, each as often as it is shown."""


class _WebWatcher:
    """Reads a page's frames as its documentation says: one line per (message_id, role)."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._shown: dict[tuple[str, str], str] = {}

    async def visible(self) -> list[str]:
        for frame in await self._page.ping():
            if frame["type"] == "entry":
                self._shown[(frame["message_id"], frame["role"])] = frame["text"]
                continue
            event = frame["event"]
            key = (event["message_id"], "assistant")
            if event["type"] == "llm_token" and len(self._shown.get(key, "")) == event["offset"]:
                self._shown[key] = self._shown.get(key, "") + event["text"]
            elif event["type"] == "response_complete":
                self._shown[key] = event["content"]
        return list(self._shown.values())


@asynccontextmanager
async def web(tmp_path: Path) -> AsyncIterator[Stand]:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        yield Stand(
            adapter=harness.adapter,
            thread=thread_of(CHAT),
            stop=browser.stop,
            visible=_WebWatcher(page).visible,
        )


@asynccontextmanager
async def console(tmp_path: Path) -> AsyncIterator[Stand]:
    written: list[str] = []
    silence = asyncio.Event()

    async def lines() -> AsyncIterator[str]:
        await silence.wait()
        yield "never typed"

    async def visible() -> list[str]:
        return "".join(written).splitlines()

    adapter = ConsoleAdapter(
        ConsoleSettings(interactive=False),
        MemoryTimeline(),
        ManualClock(),
        lines=lines(),
        write=written.append,
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(adapter.run(MemoryInbox()))
        await asyncio.sleep(0)
        try:
            yield Stand(adapter=adapter, thread=THREAD, stop=running.cancel, visible=visible)
        finally:
            running.cancel()


ADAPTERS: list[Callable[[Path], AbstractAsyncContextManager[Stand]]] = [web, console]


@pytest.fixture(params=ADAPTERS, ids=lambda factory: factory.__name__)
async def stand(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stand]:
    # A task group has to be entered and left by one task; the fixture's own would be two.
    ready: asyncio.Future[Stand] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def hold() -> None:
        async with request.param(tmp_path) as made:
            ready.set_result(made)
            await over.wait()

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(hold())
        yield await ready
        over.set()


def _reply(stand: Stand, text: str) -> OutboundReply:
    return OutboundReply(
        key="k1",
        thread=stand.thread,
        message_id=MESSAGE,
        entry_id=5,
        role="assistant",
        text=text,
        created_at=1.0,
    )


async def test_the_thread_key_survives_its_text_form_and_names_the_adapter(stand: Stand) -> None:
    assert ThreadKey.decode(stand.thread.encode()) == stand.thread
    assert (stand.thread.channel, stand.thread.account) == (stand.adapter.name, stand.adapter.account)


async def test_the_capabilities_are_stated_in_words_and_numbers(stand: Stand) -> None:
    capabilities = stand.adapter.capabilities
    assert capabilities.text_limit > 0
    assert len(capabilities.guarantee) > 20


async def test_every_event_is_taken_without_raising(stand: Stand) -> None:
    sender = stand.adapter.sender_for(stand.thread)
    events = every_event(MESSAGE)
    assert {type(event) for event in events} == set(get_args(PipelineEvent))
    for event in events:
        await sender.send_event(event)
    assert await stand.visible() != []


async def test_tokens_and_the_final_event_and_the_reply_are_one_visible_answer(stand: Stand) -> None:
    sender = stand.adapter.sender_for(stand.thread)
    for offset, piece in ((0, "The "), (4, "answer")):
        event = LlmToken(session_id="s", message_id=MESSAGE, text=piece, offset=offset)
        await sender.send_event(event)
    final = ResponseComplete(session_id="s", message_id=MESSAGE, content="The answer", entry_id=5)
    await sender.send_event(final)
    await stand.adapter.send(_reply(stand, "The answer"))
    assert await stand.visible() == ["The answer"]


async def test_a_reply_sent_twice_gives_equal_receipts_and_shows_once_where_promised(stand: Stand) -> None:
    first = await stand.adapter.send(_reply(stand, "The answer"))
    second = await stand.adapter.send(_reply(stand, "The answer"))
    assert isinstance(first, Receipt)
    assert first.native_id != ""
    shown = await stand.visible()
    assert set(shown) == {"The answer"}
    if stand.adapter.capabilities.idempotent_send:
        assert first == second
        assert shown == ["The answer"]


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidInput("x"),
        errors.StorageError("x"),
        errors.MediaUnavailable("x"),
        ConnectionResetError(),
        TimeoutError(),
        OSError(28, "No space left on device"),
        KeyError("secret"),
        RuntimeError(),
        Exception(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_any_error_of_a_send_is_understood_as_a_failure(stand: Stand, error: Exception) -> None:
    failure = stand.adapter.classify(error)
    assert failure.kind in get_args(FailureKind)
    assert failure.message != ""
    assert "secret" not in failure.message


async def test_a_foreign_media_reference_is_unavailable(stand: Stand) -> None:
    for handle in ("/etc/passwd", "../x", "", "file:///etc/passwd"):
        with pytest.raises(errors.MediaUnavailable):
            await stand.adapter.download(MediaRef(channel="elsewhere", handle=handle), max_bytes=10_000)


async def test_health_is_up_while_running_and_down_after(stand: Stand) -> None:
    assert isinstance(stand.adapter.health(), ChannelHealth)
    assert stand.adapter.health().state == "up"
    stand.stop()
    async with asyncio.timeout(10):
        while stand.adapter.health().state == "up":  # noqa: ASYNC110 - the contract has no "stopped" event
            await asyncio.sleep(0)
    assert stand.adapter.health().state == "down"
