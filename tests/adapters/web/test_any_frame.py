"""Property: whatever a client sends, it gets exactly one answer and the connection lives on."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSMsgType
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.web.inbound import thread_of
from adapters.web.protocol import ClientLimits, FrameProblem, parse_frame
from pipeline.domain.timeline import TimelineEntry
from tests.adapters.web.harness import CHAT, Browser, Page, WebHarness, serving
from tests.adapters.web.ports import ScriptedLive, ScriptedVoice

LIMITS = ClientLimits(text_chars=200, voice_bytes=1000, voice_seconds=60)

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=4,
)
_plausible = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            [
                "hello",
                "message",
                "voice",
                "command",
                "approval",
                "feedback",
                "ping",
                "event",
                "live_start",
                "live_finish",
                "live_stop",
                "speak",
                "speak_stop",
            ]
        )
        | _json,
    },
    optional={
        "client_id": st.from_regex(r"[A-Za-z0-9_-]{1,100}", fullmatch=True) | _json,
        "text": st.text(max_size=300) | _json,
        "name": st.sampled_from(["stop", "new", "help", "voice"]) | _json,
        "mime": st.sampled_from(["audio/webm", ""]) | _json,
        "size": st.integers() | _json,
        "interaction": st.text() | _json,
        "choice": st.text() | _json,
        "token": st.text() | _json,
        "chat": st.text() | _json,
        "after": _json,
        "hands_free": st.booleans() | _json,
        "up": st.booleans() | _json,
        "on": st.booleans() | _json,
        "entry_id": st.integers(min_value=0, max_value=3) | _json,
        "message_id": st.text(max_size=300) | _json,
        "part": st.integers(min_value=0, max_value=3) | _json,
        "protocol": st.sampled_from([1, 2]) | _json,
    },
)
_spoken = st.sampled_from(
    [
        {"type": "live_start", "client_id": "l1", "hands_free": True},
        {"type": "live_finish"},
        {"type": "live_stop"},
        {"type": "speak", "client_id": "s1", "entry_id": 1},
    ]
)
FRAMES = st.one_of(
    st.text(),
    st.binary(max_size=2000),
    _json.map(json.dumps),
    _plausible.map(json.dumps),
    _spoken.map(json.dumps),
)
ANSWERS = {"problem", "accepted", "pong", "live_ready", "live_ended", "speech", "binary"}
TEXT_FRAMES = st.one_of(st.text(), _json.map(json.dumps), _plausible.map(json.dumps))


@given(raw=TEXT_FRAMES)
def test_parsing_never_raises_and_a_problem_always_has_words(raw: str) -> None:
    parsed = parse_frame(raw, LIMITS)
    if isinstance(parsed, FrameProblem):
        assert parsed.code in {
            "bad_frame",
            "unknown_type",
            "text_too_long",
            "empty_message",
            "voice_too_large",
            "wrong_protocol",
            "bad_chat",
        }
        assert ": " in parsed.message


@pytest.mark.parametrize("spoken", [False, True])
def test_any_sequence_of_frames_is_answered_and_leaves_the_connection_open(
    tmp_path: Path, spoken: bool
) -> None:
    harness = WebHarness(tmp_path)
    live = ScriptedLive()
    if spoken:
        entry = TimelineEntry(entry_id=1, message_id="m", role="assistant", text="Hello", at=1.0)
        harness.timeline.add(thread_of(CHAT), entry)
        harness.adapter.attach(live, ScriptedVoice())
    with asyncio.Runner() as runner:
        context = serving(harness)
        browser: Browser = runner.run(context.__aenter__())
        page, _ = runner.run(browser.open())
        counts = Counts()

        @settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
        @given(frames=st.lists(FRAMES, max_size=5))
        def check(frames: list[str | bytes]) -> None:
            runner.run(_send_and_check(page, frames, counts))

        try:
            check()
        finally:
            runner.run(context.__aexit__(None, None, None))
    assert all(stream.calls[-1] == "close" and stream.closed.is_set() for stream in live.streams)
    assert bool(live.streams) == spoken


@dataclass(slots=True)
class Counts:
    """Over all that one socket was sent."""

    sent: int = 0
    heard: int = 0


async def _send_and_check(page: Page, frames: list[str | bytes], counts: Counts) -> None:
    for frame in frames:
        counts.sent += 1
        if isinstance(frame, bytes):
            await page.socket.send_bytes(frame)
        else:
            await page.socket.send_str(frame.encode("utf-8", "replace").decode())
        answers = await page.ping()
        assert {answer["type"] for answer in answers} <= ANSWERS
        counts.heard += len(answers)
        # Words about listening and reading aloud may come with a later answer. No frame has more than two:
        # what is read aloud has a header and its sound.
        assert counts.heard <= 2 * counts.sent
    assert not page.socket.closed


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_any_first_frame_gives_a_problem_and_no_state(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    frame: Any = data.draw(FRAMES)

    async def check() -> None:
        harness = WebHarness(tmp_path_factory.mktemp("web"))
        async with serving(harness) as browser:
            page = await browser.connect()
            if isinstance(frame, bytes):
                await page.socket.send_bytes(frame)
            else:
                await page.socket.send_str(frame.encode("utf-8", "replace").decode())
            problem = await page.hear()
            assert problem["type"] == "problem"
            assert (await page.socket.receive()).type is WSMsgType.CLOSE
        assert harness.inbox.offered == 0
        assert harness.timeline.calls == []

    asyncio.run(check())
