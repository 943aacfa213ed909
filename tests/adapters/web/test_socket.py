"""The protocol over a real socket: opening, messages, voice notes, every problem and close code.

Covers: adapters/web/connection.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adapters.identity import derived_message_id
from adapters.web.inbound import thread_of
from pipeline.domain.errors import InvalidInput, StorageError
from pipeline.domain.messages import ApprovalReply, InboundMessage, SessionCommand
from tests.adapters.web.harness import CHAT, Page, WebHarness, serving


async def test_hello_is_answered_with_welcome_and_ready(tmp_path: Path) -> None:
    async with serving(WebHarness(tmp_path)) as browser:
        _, frames = await browser.open(chat=None)
    assert [frame["type"] for frame in frames] == ["welcome", "ready"]
    assert frames[0]["bot"] == "Parlour"
    assert frames[0]["limits"] == {
        "text_chars": 200,
        "voice_bytes": 200_000,
        "voice_seconds": 60,
        "file_bytes": 100_000,
        "files": 10,
    }
    assert frames[0]["voice"] is True
    assert (frames[0]["live"], frames[0]["speech"]) == (False, False)


async def test_a_new_chat_gets_an_id_of_the_server_that_can_be_presented_again(tmp_path: Path) -> None:
    async with serving(WebHarness(tmp_path)) as browser:
        _, first = await browser.open(chat=None)
        _, second = await browser.open(chat=None)
        _, again = await browser.open(chat=first[0]["chat"])
    assert first[0]["chat"] != second[0]["chat"]
    assert again[0]["chat"] == first[0]["chat"]


async def test_a_message_is_accepted_with_an_id_that_follows_from_its_client_id(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await page.say(type="message", client_id="a1", text="hi")
        answer = await page.hear()
    expected = derived_message_id("web", "local", f"{CHAT}:a1")
    assert answer == {"type": "accepted", "client_id": "a1", "message_id": expected, "duplicate": False}
    (item,) = harness.inbox.items
    assert isinstance(item, InboundMessage)
    assert (item.text, item.thread, item.native_id) == ("hi", thread_of(CHAT), f"{CHAT}:a1")
    assert item.author.id == "owner"
    assert item.received_at == harness.clock.now()


async def test_a_message_sent_again_counts_once(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await page.say(type="message", client_id="a1", text="hi")
        first = await page.hear()
        other, _ = await browser.open()
        await other.say(type="message", client_id="a1", text="hi")
        second = await other.hear()
    assert (first["duplicate"], second["duplicate"]) == (False, True)
    assert first["message_id"] == second["message_id"]
    assert len(harness.inbox.items) == 1


@pytest.mark.parametrize("name", ["stop", "new", "help", "voice"])
async def test_a_command_is_the_same_typed_or_pressed(tmp_path: Path, name: str) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await page.say(type="command", client_id="a1", name=name)
        await page.say(type="message", client_id="a2", text=f" /{name} ")
        assert [(await page.hear())["type"] for _ in range(2)] == ["accepted", "accepted"]
    for item in harness.inbox.items:
        assert isinstance(item, SessionCommand)
        assert item.name == name


async def test_a_command_takes_its_argument_along(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await page.say(type="command", client_id="a1", name="agent", argument=" shop ")
        await page.say(type="message", client_id="a2", text="/agent shop")
        assert [(await page.hear())["type"] for _ in range(2)] == ["accepted", "accepted"]
    for item in harness.inbox.items:
        assert isinstance(item, SessionCommand)
        assert (item.name, item.argument) == ("agent", "shop")


async def test_an_approval_reaches_the_gateway(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await page.say(type="approval", client_id="a1", interaction="int_7", choice="deny")
        await page.hear()
    (item,) = harness.inbox.items
    assert isinstance(item, ApprovalReply)
    assert (item.interaction_id, item.choice) == ("int_7", "deny")


async def test_a_voice_note_is_durable_before_the_gateway_hears_of_it(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await page.say(type="voice", client_id="v1", mime="audio/webm;codecs=opus", size=5)
        await page.socket.send_bytes(b"sound")
        assert (await page.hear())["type"] == "accepted"
        (item,) = harness.inbox.items
        assert isinstance(item, InboundMessage)
        assert item.voice is not None
        assert item.voice.mime == "audio/webm;codecs=opus"
        assert await harness.adapter.download(item.voice, max_bytes=5) == b"sound"
        await harness.adapter.discard(item.voice)
    assert list(harness.media_dir.iterdir()) == []


@pytest.mark.parametrize("refuse", [None, "not today"])
async def test_the_audio_of_a_duplicate_or_refused_note_is_removed(
    tmp_path: Path, refuse: str | None
) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        for _ in range(2):
            await page.say(type="voice", client_id="v1", mime="audio/ogg", size=3)
            await page.socket.send_bytes(b"abc")
            await page.hear()
            harness.inbox.refuse = refuse
        await page.ping()
        kept = [path.name for path in harness.media_dir.iterdir()]
    (item,) = harness.inbox.items
    assert isinstance(item, InboundMessage)
    assert item.voice is not None
    assert kept == [item.voice.handle]


async def test_a_refusal_carries_its_reason(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    harness.inbox.refuse = "the queue of this chat is full"
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await page.say(type="message", client_id="a1", text="hi")
        problem = await page.hear()
    assert problem == {
        "type": "problem",
        "code": "refused",
        "message": "the queue of this chat is full",
        "client_id": "a1",
    }


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StorageError("disk full"), "unavailable"),
        (InvalidInput("text: odd"), "bad_frame"),
        (RuntimeError("secret words"), "internal"),
    ],
)
async def test_a_failing_gateway_is_a_problem_and_not_a_closed_socket(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception, code: str
) -> None:
    harness = WebHarness(tmp_path)
    harness.inbox.error = error
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await page.say(type="message", client_id="a1", text="hi")
        problem = await page.hear()
        harness.inbox.error = None
        await page.say(type="message", client_id="a1", text="hi")
        accepted = await page.hear()
    assert (problem["code"], problem["client_id"]) == (code, "a1")
    assert accepted["type"] == "accepted"
    assert "secret words" not in caplog.text + problem["message"]


async def test_an_unwritable_media_directory_is_unavailable(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    harness.media_dir.write_text("a file where the directory should be")
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await page.say(type="voice", client_id="v1", mime="audio/ogg", size=3)
        await page.socket.send_bytes(b"abc")
        problem = await page.hear()
    assert (problem["code"], problem["client_id"]) == ("unavailable", "v1")
    assert harness.inbox.offered == 0


@pytest.mark.parametrize(
    ("frame", "code", "named"),
    [
        ("{", "bad_frame", "JSON"),
        ("[]", "bad_frame", "object"),
        ("{}", "bad_frame", "type"),
        ('{"type": 3}', "bad_frame", "type"),
        ('{"type": "dance"}', "unknown_type", "type"),
        ('{"type": "message", "text": "x"}', "bad_frame", "client_id"),
        ('{"type": "message", "client_id": "a b", "text": "x"}', "bad_frame", "client_id"),
        ('{"type": "message", "client_id": "' + "a" * 101 + '", "text": "x"}', "bad_frame", "client_id"),
        ('{"type": "message", "client_id": "a"}', "bad_frame", "text"),
        ('{"type": "message", "client_id": "a", "text": null}', "bad_frame", "text"),
        ('{"type": "message", "client_id": "a", "text": "\\ud800"}', "bad_frame", "text"),
        ('{"type": "message", "client_id": "a", "text": " \\n"}', "empty_message", "text"),
        ('{"type": "message", "client_id": "a", "text": "' + "x" * 201 + '"}', "text_too_long", "200"),
        ('{"type": "command", "client_id": "a", "name": "rm"}', "bad_frame", "name"),
        ('{"type": "command", "client_id": "a", "name": "agent", "argument": 1}', "bad_frame", "argument"),
        ('{"type": "approval", "client_id": "a", "choice": "x"}', "bad_frame", "interaction"),
        ('{"type": "approval", "client_id": "a", "interaction": "x"}', "bad_frame", "choice"),
        ('{"type": "voice", "client_id": "a", "mime": "audio/ogg"}', "bad_frame", "size"),
        ('{"type": "voice", "client_id": "a", "mime": "audio/ogg", "size": 0}', "bad_frame", "size"),
        ('{"type": "voice", "client_id": "a", "mime": "audio/ogg", "size": true}', "bad_frame", "size"),
        ('{"type": "voice", "client_id": "a", "mime": "../../x", "size": 1}', "bad_frame", "mime"),
        (
            '{"type": "voice", "client_id": "a", "mime": "audio/ogg", "size": 200001}',
            "voice_too_large",
            "200000",
        ),
        ('{"type": "hello", "protocol": 1, "token": "correct-horse"}', "hello_twice", "hello"),
        ('{"type": "ping", "pad": "' + "x" * 70_000 + '"}', "bad_frame", "frame"),
        ("[" * 60_000, "bad_frame", "JSON"),
        ('{"type": ' + "9" * 5000 + "}", "bad_frame", "JSON"),
        ('{"type": NaN}', "bad_frame", "JSON"),
    ],
)
async def test_each_malformed_frame_is_a_problem_in_words(
    tmp_path: Path, frame: str, code: str, named: str
) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await page.socket.send_str(frame)
        problem = await page.hear()
        assert await page.ping() == []
    assert problem["code"] == code
    assert named in problem["message"]
    assert harness.inbox.offered == 0


async def _announce(page: Page, size: int) -> None:
    await page.say(type="voice", client_id="v1", mime="audio/ogg", size=size)


async def test_audio_of_another_size_is_discarded(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await _announce(page, 4)
        await page.socket.send_bytes(b"abc")
        problem = await page.hear()
    assert (problem["code"], problem["client_id"]) == ("voice_size_mismatch", "v1")
    assert harness.inbox.offered == 0
    assert not harness.media_dir.exists()


async def test_an_announcement_without_audio_is_a_problem_and_the_next_frame_counts(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await _announce(page, 4)
        await page.say(type="message", client_id="a1", text="hi")
        answers = [await page.hear(), await page.hear()]
        await page.socket.send_bytes(b"late")
        late = await page.hear()
    assert [answer.get("code", answer["type"]) for answer in answers] == ["voice_size_mismatch", "accepted"]
    assert late["code"] == "unexpected_binary"


async def test_audio_without_an_announcement_is_a_problem(tmp_path: Path) -> None:
    async with serving(WebHarness(tmp_path)) as browser:
        page, _ = await browser.open()
        await page.socket.send_bytes(b"abc")
        assert (await page.hear())["code"] == "unexpected_binary"
        assert await page.ping() == []


@pytest.mark.parametrize(
    ("changes", "size", "code"),
    [({}, 200_001, "voice_too_large"), ({"voice_enabled": False}, 3, "voice_disabled")],
)
async def test_the_audio_of_a_refused_announcement_is_discarded_silently(
    tmp_path: Path, changes: dict[str, Any], size: int, code: str
) -> None:
    harness = WebHarness(tmp_path, **changes)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await _announce(page, size)
        await page.socket.send_bytes(b"abc")
        problem = await page.hear()
        assert await page.ping() == []
    assert (problem["code"], problem["client_id"]) == (code, "v1")
    assert harness.inbox.offered == 0


async def test_a_frame_over_the_transports_limit_closes_with_1009(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await _announce(page, 200_000)
        await page.socket.send_bytes(b"x" * (harness.settings.frame_bytes + 1))
        assert await page.hear_close() == 1009
