"""Live speech over a real socket: what a microphone's frames become, and every way in which it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from adapters.web.inbound import OWNER, thread_of
from adapters.web.microphone import BACKLOG_BYTES, BYTES_PER_S
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.live import SpeechDropped, SpeechEnded, SpeechFinal, SpeechPartial, SpeechStarted
from tests.adapters.web.harness import CHAT, PATIENCE_S, Browser, Page, WebHarness, serving
from tests.adapters.web.ports import ScriptedLive

PCM = b"\x01\x02" * 1024
FINAL = SpeechFinal(utterance=1, text="hi there", language="en", confidence=0.9, message_id="m_1")


@asynccontextmanager
async def listening(
    tmp_path: Path, *, hands_free: bool = True
) -> AsyncIterator[tuple[Page, ScriptedLive, Browser]]:
    """A page whose microphone is open."""
    live = ScriptedLive()
    harness = WebHarness(tmp_path)
    harness.adapter.attach(live, None)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await page.say(type="live_start", client_id="l1", hands_free=hands_free)
        assert await page.hear() == {"type": "live_ready", "client_id": "l1"}
        yield page, live, browser


async def soon(event: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await event.wait()


@pytest.mark.parametrize("there", [True, False])
async def test_welcome_says_whether_somebody_listens(tmp_path: Path, there: bool) -> None:
    harness = WebHarness(tmp_path)
    harness.adapter.attach(ScriptedLive() if there else None, None)
    async with serving(harness) as browser:
        _, frames = await browser.open()
    assert (frames[0]["live"], frames[0]["speech"]) == (there, False)


async def test_without_speech_recognition_a_start_is_refused_with_a_reason(tmp_path: Path) -> None:
    async with serving(WebHarness(tmp_path)) as browser:
        page, frames = await browser.open()
        assert frames[0]["live"] is False
        await page.say(type="live_start", client_id="l1", hands_free=True)
        problem = await page.hear()
        await page.socket.send_bytes(PCM)
        stray = await page.hear()
    assert (problem["code"], problem["client_id"]) == ("live_disabled", "l1")
    assert stray["code"] == "unexpected_binary"


@pytest.mark.parametrize("hands_free", [True, False])
async def test_sound_reaches_the_stream_in_order_and_what_is_heard_comes_back(
    tmp_path: Path, hands_free: bool
) -> None:
    events = (
        SpeechStarted(utterance=1),
        SpeechPartial(utterance=1, text="hi", stable_chars=0),
        SpeechEnded(utterance=1),
        FINAL,
        SpeechDropped(utterance=2, reason="nothing_heard", message=""),
    )
    async with listening(tmp_path, hands_free=hands_free) as (page, live, _):
        await page.socket.send_bytes(b"\x01\x00")
        await page.socket.send_bytes(b"\x02\x00" * 16_000)
        assert await page.ping() == []
        for event in events:
            live.stream.on_event(event)
        reported = await page.ping()
        stream = live.stream
    assert stream.heard == [b"\x01\x00", b"\x02\x00" * 16_000]
    assert (stream.thread, stream.author, stream.hands_free) == (thread_of(CHAT), OWNER, hands_free)
    assert [frame["type"] for frame in reported] == ["live"] * 5
    assert reported[1]["event"] == {"type": "speech_partial", "utterance": 1, "text": "hi", "stable_chars": 0}
    assert reported[3]["event"]["message_id"] == "m_1"


async def test_sound_that_arrives_while_recognition_starts_is_not_lost(tmp_path: Path) -> None:
    live = ScriptedLive()
    live.opening.clear()
    harness = WebHarness(tmp_path)
    harness.adapter.attach(live, None)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await page.say(type="live_start", client_id="l1", hands_free=True)
        await page.socket.send_bytes(PCM)
        await page.say(type="message", client_id="a1", text="meanwhile")
        assert (await page.hear())["type"] == "accepted"
        live.opening.set()
        assert (await page.hear())["type"] == "live_ready"
        assert live.stream.heard == [PCM]


async def test_releasing_the_button_finishes_and_other_frames_are_heard_meanwhile(tmp_path: Path) -> None:
    async with listening(tmp_path, hands_free=False) as (page, live, _):
        live.gate.clear()
        await page.say(type="live_finish")
        assert await page.ping() == []
        assert live.stream.calls == ["finish"]
        await page.say(type="message", client_id="a1", text="meanwhile")
        assert (await page.hear())["type"] == "accepted"
        live.gate.set()
        await page.say(type="live_finish")
        await page.say(type="live_stop")
        await page.hear_until("live_ended")
        assert live.stream.calls == ["finish", "finish", "close"]


async def test_stopping_gives_the_last_words_first_and_another_start_listens_again(tmp_path: Path) -> None:
    async with listening(tmp_path) as (page, live, _):
        live.stream.last_words = (FINAL,)
        await page.say(type="live_stop")
        frames = await page.hear_until("live_ended")
        assert [frame["type"] for frame in frames] == ["live", "live_ended"]
        assert (frames[1]["reason"], frames[1]["message"]) == ("stopped", "")
        await page.socket.send_bytes(PCM)
        assert (await page.hear())["code"] == "unexpected_binary"
        await page.say(type="live_start", client_id="l2", hands_free=True)
        assert await page.hear() == {"type": "live_ready", "client_id": "l2"}
        assert len(live.streams) == 2


async def test_a_second_start_is_refused_and_the_first_continues(tmp_path: Path) -> None:
    async with listening(tmp_path) as (page, live, _):
        await page.say(type="live_start", client_id="l2", hands_free=False)
        problem = await page.hear()
        await page.socket.send_bytes(PCM)
        assert await page.ping() == []
        assert live.stream.heard == [PCM]
    assert (problem["code"], problem["client_id"]) == ("busy", "l2")
    assert len(live.streams) == 1


@pytest.mark.parametrize("kind", ["live_finish", "live_stop"])
async def test_without_a_microphone_there_is_nothing_to_end(tmp_path: Path, kind: str) -> None:
    harness = WebHarness(tmp_path)
    harness.adapter.attach(ScriptedLive(), None)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await page.say(type=kind)
        assert (await page.hear())["code"] == "not_listening"


@pytest.mark.parametrize("sound", [b"", b"\x01", b"\x01" * 999, b"\x01\x02" * 16_001])
async def test_a_frame_that_is_no_sound_is_left_out_and_reported(tmp_path: Path, sound: bytes) -> None:
    async with listening(tmp_path) as (page, live, _):
        await page.socket.send_bytes(sound)
        problem = await page.hear()
        await page.socket.send_bytes(PCM)
        assert await page.ping() == []
        assert live.stream.heard == [PCM]
    assert problem["code"] == "bad_audio"
    assert f"{len(sound)} bytes" in problem["message"]


async def test_a_voice_note_between_two_pieces_of_sound_is_a_voice_note(tmp_path: Path) -> None:
    async with listening(tmp_path) as (page, live, browser):
        await page.socket.send_bytes(PCM)
        await page.say(type="voice", client_id="v1", mime="audio/webm", size=3)
        await page.socket.send_bytes(b"abc")
        assert (await page.hear())["type"] == "accepted"
        await page.socket.send_bytes(PCM)
        assert await page.ping() == []
        assert live.stream.heard == [PCM, PCM]
        assert len(browser.harness.inbox.items) == 1


async def test_a_flood_closes_the_microphone_with_words_and_what_is_under_way_is_ignored(
    tmp_path: Path,
) -> None:
    async with listening(tmp_path) as (page, live, _):
        second = b"\x00" * 32_000
        for _ in range(BACKLOG_BYTES // len(second) + 3):
            await page.socket.send_bytes(second)
        ended = await page.hear()
        assert await page.ping() == []
        assert len(live.stream.heard) == BACKLOG_BYTES // len(second)
        assert live.stream.closed.is_set()
        await page.say(type="live_start", client_id="l2", hands_free=True)
        assert (await page.hear())["type"] == "live_ready"
    assert (ended["type"], ended["reason"]) == ("live_ended", "too_fast")
    assert "faster than anybody can speak" in ended["message"]


async def test_a_page_that_was_held_up_may_catch_up(tmp_path: Path) -> None:
    async with listening(tmp_path) as (page, live, browser):
        for _ in range(30):
            for _ in range(2 * BYTES_PER_S // 32_000):
                await page.socket.send_bytes(b"\x00" * 32_000)
            assert await page.ping() == []
            await browser.harness.clock.advance(2.0)
        assert len(live.stream.heard) == 30 * 4


async def test_where_no_one_can_listen_the_person_is_informed_why(tmp_path: Path) -> None:
    live = ScriptedLive()
    live.error = MediaUnavailable("too many people speak just now; try again in a minute")
    harness = WebHarness(tmp_path)
    harness.adapter.attach(live, None)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await page.say(type="live_start", client_id="l1", hands_free=True)
        problem = await page.hear()
        await page.socket.send_bytes(PCM)
        assert await page.ping() == []
        live.error = None
        await page.say(type="live_start", client_id="l2", hands_free=True)
        assert (await page.hear())["type"] == "live_ready"
    assert (problem["code"], problem["client_id"]) == ("live_unavailable", "l1")
    assert problem["message"] == "too many people speak just now; try again in a minute"


async def test_a_stream_that_the_gateway_has_ended_says_why(tmp_path: Path) -> None:
    async with listening(tmp_path) as (page, live, _):
        live.stream.error = MediaUnavailable("you talk in another window now")
        await page.socket.send_bytes(PCM)
        await page.socket.send_bytes(PCM)
        ended = await page.hear()
        assert await page.ping() == []
        assert live.stream.calls == ["close"]
    assert ended == {
        "type": "live_ended",
        "reason": "unavailable",
        "message": "you talk in another window now",
    }


@pytest.mark.parametrize("where", ["open", "feed"])
async def test_a_fault_of_the_recognition_ends_only_the_listening(
    tmp_path: Path, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    live = ScriptedLive()
    harness = WebHarness(tmp_path)
    harness.adapter.attach(live, None)
    fault = RuntimeError("secret words")
    async with serving(harness) as browser:
        page, _ = await browser.open()
        live.error = fault if where == "open" else None
        await page.say(type="live_start", client_id="l1", hands_free=True)
        if where == "feed":
            await page.hear()
            live.stream.error = fault
            await page.socket.send_bytes(PCM)
        ended = await page.hear()
        assert await page.ping() == []
    assert (ended["type"], ended["reason"]) == ("live_ended", "failed")
    assert "secret" not in ended["message"] + caplog.text
    assert "RuntimeError" in caplog.text


@pytest.mark.parametrize("how", ["close", "abort"])
async def test_a_socket_that_closes_closes_its_stream(tmp_path: Path, how: str) -> None:
    async with listening(tmp_path) as (page, live, _):
        if how == "close":
            await page.socket.close()
        else:
            page.socket._response.connection.transport.abort()  # type: ignore[union-attr]  # no public way to cut a line
        await soon(live.stream.closed)
    assert live.stream.calls == ["close"]


async def test_a_shutdown_closes_the_stream(tmp_path: Path) -> None:
    async with listening(tmp_path) as (page, live, browser):
        browser.stop()
        assert await page.hear_close() == 1001
        await soon(live.stream.closed)


async def test_a_start_and_a_stop_at_once_leave_nothing_open(tmp_path: Path) -> None:
    live = ScriptedLive()
    harness = WebHarness(tmp_path)
    harness.adapter.attach(live, None)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await page.say(type="live_start", client_id="l1", hands_free=True)
        await page.say(type="live_stop")
        assert (await page.hear_until("live_ended"))[-1]["reason"] == "stopped"
        assert live.stream.closed.is_set()
