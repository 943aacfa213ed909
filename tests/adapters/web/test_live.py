"""Live frames and history over a real socket: order, resuming, two windows, slow readers.

Covers: adapters/web/hub.py, adapters/web/outgoing.py.
"""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from pathlib import Path

from adapters.channel import OutboundReply
from adapters.web.inbound import thread_of
from pipeline.domain.events import (
    ApprovalRequired,
    ApprovalResolved,
    ErrorEvent,
    LlmToken,
    ResponseComplete,
    TurnStarted,
)
from pipeline.domain.ids import ThreadKey
from pipeline.domain.timeline import EntryRole, TimelineEntry
from tests.adapters.fakes import MemoryTimeline, every_event
from tests.adapters.web.harness import CHAT, PATIENCE_S, TOKEN, Frame, WebHarness, serving

THREAD = thread_of(CHAT)


def line(entry_id: int, message_id: str, role: EntryRole, text: str = "") -> TimelineEntry:
    return TimelineEntry(entry_id=entry_id, message_id=message_id, role=role, text=text, at=1.0)


def reply(entry_id: int, message_id: str, text: str) -> OutboundReply:
    return OutboundReply(
        key=f"k{entry_id}",
        thread=THREAD,
        message_id=message_id,
        entry_id=entry_id,
        role="assistant",
        text=text,
        created_at=1.0,
    )


def token(message_id: str, text: str, offset: int) -> LlmToken:
    return LlmToken(session_id="ses_1", message_id=message_id, text=text, offset=offset)


def complete(message_id: str, text: str, entry_id: int) -> ResponseComplete:
    return ResponseComplete(session_id="ses_1", message_id=message_id, content=text, entry_id=entry_id)


def lines_of(frames: list[Frame]) -> list[tuple[int, str]]:
    return [(frame["entry_id"], frame["role"]) for frame in frames if frame["type"] == "entry"]


async def test_frames_that_wait_together_come_in_one_message_to_a_client_that_reads_arrays(
    tmp_path: Path,
) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        single, _ = await browser.open()
        batched = await browser.connect()
        await batched.say(type="hello", protocol=1, token=TOKEN, chat=CHAT, batch=True)
        while "ready" not in (await batched.socket.receive_str()):
            pass
        sender = harness.adapter.sender_for(THREAD)
        for offset in range(100):
            await sender.send_event(token("m_1", "a", offset))
        await sender.send_event(complete("m_1", "a" * 100, 1))
        one_by_one = await single.ping()
        first = json.loads(await batched.socket.receive_str())
        rest = json.loads(await batched.socket.receive_str())
    assert (len(first), len(rest)) == (64, 37)
    assert first + rest == one_by_one


async def test_two_windows_of_a_chat_see_the_same_and_another_chat_sees_nothing(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        first, _ = await browser.open(nodes=True)
        second, _ = await browser.open(nodes=True)
        plain, _ = await browser.open()
        stranger, _ = await browser.open(chat=None)
        sender = harness.adapter.sender_for(THREAD)
        for event in every_event("m_1"):
            await sender.send_event(event)
        seen = await first.ping()
        assert seen == await second.ping()
        without_nodes = await plain.ping()
        assert await stranger.ping() == []
    assert [frame["event"]["type"] for frame in seen] == [event.type for event in every_event("m_1")]
    assert without_nodes == [frame for frame in seen if not frame["event"]["type"].startswith("node_")]
    (transcript,) = (frame["event"] for frame in seen if frame["event"]["type"] == "transcript_ready")
    assert (transcript["text"], transcript["confidence"]) == ("hello", None)


async def test_history_comes_oldest_first_before_ready(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    for number in range(1, 4):
        harness.timeline.add(THREAD, line(number, f"m_{number}", "user", f"text {number}"))
    harness.timeline.add(THREAD, line(0, "m_9", "user", "waits"))
    async with serving(harness) as browser:
        _, frames = await browser.open()
        _, resumed = await browser.open(after=2)
    assert [frame["type"] for frame in frames] == ["welcome", "entry", "entry", "entry", "entry", "ready"]
    assert lines_of(frames) == [(1, "user"), (2, "user"), (3, "user"), (0, "user")]
    assert lines_of(resumed) == [(3, "user"), (0, "user")]
    assert harness.timeline.calls[-1] == (THREAD, 2, 500)


async def test_an_answer_in_progress_is_given_to_a_newcomer_with_its_open_question(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        sender = harness.adapter.sender_for(THREAD)
        await sender.send_event(TurnStarted(session_id="ses_1", message_id="m_1"))
        await sender.send_event(token("m_1", "The ans", 0))
        question = ApprovalRequired(
            session_id="ses_1",
            message_id="m_1",
            interaction_id="int_1",
            tool_name="shell",
            reasoning="it writes",
            options=("allow", "deny"),
            timeout_s=60.0,
        )
        await sender.send_event(question)
        await harness.clock.advance(20)
        page, frames = await browser.open()
        await sender.send_event(token("m_1", "wer", 7))
        live = await page.ping()
        resolved = ApprovalResolved(
            session_id="ses_1", message_id="m_1", interaction_id="int_1", choice="allow"
        )
        await sender.send_event(resolved)
        _, answered = await browser.open()
        await sender.send_event(complete("m_1", "The answer", 2))
        _, later = await browser.open()
    assert [frame["type"] for frame in frames] == ["welcome", "snapshot", "event", "ready"]
    assert frames[1]["text"] == "The ans"
    assert frames[2]["event"]["interaction_id"] == "int_1"
    assert frames[2]["event"]["timeout_s"] == 40.0, "what is left, and not what there was"
    assert [frame["event"]["offset"] for frame in live] == [7]
    reported = [frame["event"]["type"] for frame in answered if frame["type"] == "event"]
    assert reported == ["approval_required", "approval_resolved"]
    assert [frame["type"] for frame in later] == ["welcome", "ready"]


async def test_the_questions_of_paused_runs_come_before_ready_whatever_is_shown_already(
    tmp_path: Path,
) -> None:
    harness = WebHarness(tmp_path)
    harness.timeline.add(THREAD, line(1, "m_1", "user", "pay"))
    harness.timeline.add(THREAD, line(2, "m_1", "assistant", "Send 100?"))
    harness.timeline.asked[THREAD] = [
        ApprovalRequired(
            session_id="ses_1",
            message_id="m_1",
            interaction_id="int_1",
            tool_name="ask",
            reasoning="Send 100?",
            options=("approve", "deny"),
            timeout_s=0.0,
        )
    ]
    async with serving(harness) as browser:
        _, frames = await browser.open()
        _, again = await browser.open(after=2)
        _, stranger = await browser.open(chat=None)
    assert [frame["type"] for frame in frames] == ["welcome", "entry", "entry", "event", "ready"]
    assert [frame["type"] for frame in again] == ["welcome", "event", "ready"]
    assert again[1]["event"] == {
        "type": "approval_required",
        "session_id": "ses_1",
        "message_id": "m_1",
        "interaction_id": "int_1",
        "tool_name": "ask",
        "reasoning": "Send 100?",
        "options": ["approve", "deny"],
        "timeout_s": 0.0,
        "paused": False,
        "command": "",
        "asked_at": 0.0,
    }
    assert [frame["type"] for frame in stranger] == ["welcome", "ready"]


async def test_an_answer_that_is_in_the_history_has_no_snapshot_although_its_event_is_late(
    tmp_path: Path,
) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        await harness.adapter.sender_for(THREAD).send_event(token("m_1", "The ans", 0))
        harness.timeline.add(THREAD, line(2, "m_1", "assistant", "The answer"))
        _, frames = await browser.open()
    assert [frame["type"] for frame in frames] == ["welcome", "entry", "ready"]


class _SlowTimeline(MemoryTimeline):
    """Reads the log, then keeps its reader waiting, while the world continues."""

    def __init__(self) -> None:
        super().__init__()
        self.read = asyncio.Event()
        self.proceed = asyncio.Event()

    async def entries(self, thread: ThreadKey, *, after: int, limit: int) -> tuple[TimelineEntry, ...]:
        found = await super().entries(thread, after=after, limit=limit)
        self.read.set()
        await self.proceed.wait()
        return found


async def test_what_happens_while_the_history_is_read_is_neither_lost_nor_doubled(tmp_path: Path) -> None:
    timeline = _SlowTimeline()
    harness = WebHarness(tmp_path, timeline=timeline)
    timeline.add(THREAD, line(1, "m_1", "user", "one"))
    timeline.add(THREAD, line(2, "m_1", "assistant", "first answer"))
    async with serving(harness) as browser:
        page = await browser.connect()
        await page.say(type="hello", protocol=1, token=TOKEN, chat=CHAT)
        await timeline.read.wait()
        sender = harness.adapter.sender_for(THREAD)
        await sender.send_event(complete("m_1", "first answer", 2))
        harness.adapter.entry_recorded(THREAD, line(2, "m_1", "assistant", "first answer"))
        harness.adapter.entry_recorded(THREAD, line(3, "m_2", "user", "two"))
        await sender.send_event(TurnStarted(session_id="ses_1", message_id="m_2"))
        await sender.send_event(token("m_2", "second", 0))
        timeline.proceed.set()
        frames = await page.hear_until("ready")
        live = await page.ping()
        await sender.send_event(token("m_2", " answer", 6))
        await sender.send_event(complete("m_2", "second answer", 4))
        await harness.adapter.send(reply(4, "m_2", "second answer"))
        await harness.adapter.send(reply(4, "m_2", "second answer"))
        rest = await page.ping()
    assert lines_of(frames) == [(1, "user"), (2, "assistant")]
    assert [frame["text"] for frame in frames if frame["type"] == "snapshot"] == ["second"]
    assert lines_of(live) == [(3, "user")]
    assert [frame["event"]["type"] for frame in live if frame["type"] == "event"] == ["turn_started"]
    kinds = [frame["event"]["type"] for frame in rest if frame["type"] == "event"]
    assert kinds == ["llm_token", "response_complete"]
    assert lines_of(rest) == [(4, "assistant")]


async def test_a_client_that_reconnects_again_and_again_sees_every_line_once_and_in_order(
    tmp_path: Path,
) -> None:
    harness = WebHarness(tmp_path)
    seen: list[tuple[int, str]] = []
    async with serving(harness) as browser:
        for number in range(1, 25, 3):
            after = max((entry_id for entry_id, _ in seen), default=0)
            page, frames = await browser.open(after=after)
            for offset in range(3):
                recorded = line(number + offset, f"m_{number + offset}", "user", "text")
                harness.timeline.add(THREAD, recorded)
                if offset < 2:
                    harness.adapter.entry_recorded(THREAD, recorded)
            seen += lines_of(frames) + lines_of(await page.ping())
            await page.socket.close()
        _, frames = await browser.open(after=max(entry_id for entry_id, _ in seen))
        seen += lines_of(frames)
    assert seen == [(number, "user") for number in range(1, 25)]


async def test_a_reply_without_a_reader_has_a_receipt_and_waits_in_the_log(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        receipt = await harness.adapter.send(reply(7, "m_1", "later"))
        harness.timeline.add(THREAD, line(7, "m_1", "assistant", "later"))
        page, frames = await browser.open()
        await harness.adapter.send(reply(7, "m_1", "later"))
        assert await page.ping() == []
    assert receipt.native_id == "7"
    assert lines_of(frames) == [(7, "assistant")]


class _SleepingReader:
    """A raw WebSocket client with a tiny receive buffer that reads only on request."""

    def __init__(self, harness: WebHarness) -> None:
        assert harness.server is not None
        assert harness.server.port is not None
        self._harness = harness
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.setblocking(False)
        self._data = b""
        self._port = harness.server.port

    async def open(self) -> None:
        """Connect, say hello and read up to `ready`."""
        loop = asyncio.get_running_loop()
        await loop.sock_connect(self._socket, ("127.0.0.1", self._port))
        key = base64.b64encode(bytes(16)).decode()
        request = (
            f"GET /ws HTTP/1.1\r\nHost: {self._harness.host}\r\nOrigin: {self._harness.origin}\r\n"
            f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: {key}\r\n\r\n"
        )
        await loop.sock_sendall(self._socket, request.encode())
        while b"\r\n\r\n" not in await loop.sock_recv(self._socket, 4096):
            pass
        hello = json.dumps({"type": "hello", "protocol": 1, "token": TOKEN, "chat": CHAT}).encode()
        # A client's frame is masked; a mask of zeroes leaves the bytes as they are.
        await loop.sock_sendall(self._socket, bytes([0x81, 0x80 | len(hello), 0, 0, 0, 0]) + hello)
        await self.read_frames(b'"ready"')

    async def read_frames(self, stop_at: bytes) -> list[bytes]:
        """The payloads up to the first that contains `stop_at`, or up to the close frame."""
        loop = asyncio.get_running_loop()
        frames: list[bytes] = []
        async with asyncio.timeout(PATIENCE_S):
            while True:
                while (cut := _frame_end(self._data)) is not None:
                    start, end = cut
                    frames.append(self._data[start:end])
                    opcode, self._data = self._data[0] & 0x0F, self._data[end:]
                    if opcode == 8 or stop_at in frames[-1]:
                        return frames
                chunk = await loop.sock_recv(self._socket, 1 << 20)
                if not chunk:
                    return frames
                self._data += chunk

    def close(self) -> None:
        self._socket.close()


def _frame_end(data: bytes) -> tuple[int, int] | None:
    if len(data) < 2:
        return None
    length, start = data[1], 2
    if length == 126:
        start = 4
    elif length == 127:
        start = 10
    if len(data) < start:
        return None
    if start > 2:
        length = int.from_bytes(data[2:start], "big")
    return (start, start + length) if len(data) >= start + length else None


async def test_a_slow_reader_misses_tokens_but_never_an_outcome(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        quick, _ = await browser.open()
        slow = _SleepingReader(harness)
        await slow.open()
        sender = harness.adapter.sender_for(THREAD)
        piece = "x" * 30_000
        quick_tokens = 0
        for number in range(600):
            await sender.send_event(token("m_1", piece, number * len(piece)))
            if number % 50 == 0:
                quick_tokens += len(await quick.ping())
                await sender.send_event(
                    ErrorEvent(
                        session_id="s", message_id=f"m_e{number}", code="x", message="y", recoverable=True
                    )
                )
        await sender.send_event(complete("m_1", "done", 9))
        quick_tokens += len(await quick.ping())
        frames = await slow.read_frames(b"response_complete")
        slow.close()
    tokens = sum(b'"llm_token"' in frame for frame in frames)
    errors = sum(b'"type":"error"' in frame for frame in frames)
    assert b"response_complete" in frames[-1]
    assert errors == 12
    assert tokens < 600
    assert quick_tokens == 600 + 12 + 1


async def test_a_reader_too_slow_for_what_may_not_be_dropped_is_closed(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness):
        slow = _SleepingReader(harness)
        await slow.open()
        for number in range(1, 4001):
            harness.adapter.entry_recorded(THREAD, line(number, f"m_{number}", "user", "x" * 10_000))
            if harness.adapter.health().detail == "0 open pages":
                break
            if number % 100 == 0:
                await asyncio.sleep(0)
        frames = await slow.read_frames(b"no frame has this")
        slow.close()
    assert 0 < sum(b'"entry"' in frame for frame in frames) < 4000
