"""Answers read aloud over a real socket: only this chat's own, one at a time, beside everything else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from adapters.web.inbound import thread_of
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.timeline import EntryRole, TimelineEntry
from tests.adapters.web.harness import CHAT, PATIENCE_S, Page, WebHarness, serving
from tests.adapters.web.ports import ScriptedVoice

OTHER_CHAT = "c_" + "f" * 32


def line(entry_id: int, role: EntryRole, text: str) -> TimelineEntry:
    return TimelineEntry(entry_id=entry_id, message_id=f"m_{entry_id}", role=role, text=text, at=1.0)


@asynccontextmanager
async def reading(tmp_path: Path) -> AsyncIterator[tuple[Page, ScriptedVoice, WebHarness]]:
    """A page of a chat with a question (1), an answer (2), a notice (3) and an empty answer (4)."""
    voice = ScriptedVoice()
    harness = WebHarness(tmp_path)
    harness.adapter.attach(None, voice)
    roles: tuple[tuple[EntryRole, str], ...] = (
        ("user", "hi"),
        ("assistant", "Hello **you**"),
        ("notice", "stopped"),
        ("assistant", " "),
    )
    for number, (role, text) in enumerate(roles, 1):
        harness.timeline.add(thread_of(CHAT), line(number, role, text))
    harness.timeline.add(thread_of(OTHER_CHAT), line(9, "assistant", "somebody else's"))
    async with serving(harness) as browser:
        page, frames = await browser.open()
        assert frames[0]["speech"] is True
        yield page, voice, harness


async def test_an_answer_is_read_and_its_sound_follows_its_header_at_once(tmp_path: Path) -> None:
    async with reading(tmp_path) as (page, voice, _):
        await page.say(type="speak", client_id="s1", entry_id=2)
        header = await page.hear()
        sound = (await page.hear())["bytes"]
    assert header == {
        "type": "speech",
        "client_id": "s1",
        "entry_id": 2,
        "mime": "audio/ogg",
        "seconds": 1.5,
        "size": len(sound),
    }
    assert sound == b"Hello **you**"
    assert voice.said == ["Hello **you**"]
    assert voice.answers == [(thread_of(CHAT), "m_2")]


async def test_an_answer_is_read_part_by_part_from_its_first_sentence_on(tmp_path: Path) -> None:
    async with reading(tmp_path) as (page, voice, harness):
        text = "The tide **rises** twice a day. " + "The moon draws it, and the sun helps. " * 12
        harness.timeline.add(thread_of(CHAT), line(5, "assistant", text))
        await page.say(type="speak", client_id="s0", entry_id=5, part=0)
        header = await page.hear()
        await page.hear()
        assert (header["part"], header["parts"]) == (0, 3)
        for part in (1, 2):
            await page.say(type="speak", client_id=f"s{part}", entry_id=5, part=part)
            assert (await page.hear())["part"] == part
            await page.hear()
        await page.say(type="speak", client_id="s3", entry_id=5, part=3)
        problem = await page.hear()
    assert voice.said[0] == "The tide rises twice a day."
    assert " ".join(voice.said) == text.replace("*", "").strip()
    assert (problem["code"], problem["client_id"]) == ("not_found", "s3")


@pytest.mark.parametrize("entry_id", [1, 3, 4, 5, 9, 2**53 - 1])
async def test_nothing_but_a_finished_answer_of_this_chat_is_read(tmp_path: Path, entry_id: int) -> None:
    async with reading(tmp_path) as (page, voice, _):
        await page.say(type="speak", client_id="s1", entry_id=entry_id)
        problem = await page.hear()
    assert (problem["code"], problem["client_id"]) == ("not_found", "s1")
    assert voice.said == []


async def test_without_a_voice_it_says_so(tmp_path: Path) -> None:
    async with serving(WebHarness(tmp_path)) as browser:
        page, frames = await browser.open()
        assert frames[0]["speech"] is False
        await page.say(type="speak", client_id="s1", entry_id=2)
        problem = await page.hear()
    assert (problem["code"], problem["client_id"]) == ("speech_disabled", "s1")


async def test_one_answer_at_a_time_and_other_frames_continue(tmp_path: Path) -> None:
    async with reading(tmp_path) as (page, voice, _):
        voice.gate.clear()
        await page.say(type="speak", client_id="s1", entry_id=2)
        await page.say(type="speak", client_id="s2", entry_id=2)
        problem = await page.hear()
        await page.say(type="message", client_id="a1", text="meanwhile")
        assert (await page.hear())["type"] == "accepted"
        voice.gate.set()
        assert (await page.hear())["client_id"] == "s1"
        assert (await page.hear())["type"] == "binary"
        await page.say(type="ping")
        assert (await page.hear())["type"] == "pong"
        await page.say(type="speak", client_id="s3", entry_id=2)
        assert (await page.hear())["client_id"] == "s3"
        assert (await page.hear())["type"] == "binary"
    assert (problem["code"], problem["client_id"]) == ("busy", "s2")


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (MediaUnavailable("there is no voice for this language"), "speech_unavailable", "no voice for this"),
        (RuntimeError("secret"), "internal", "something went wrong"),
    ],
)
async def test_what_cannot_be_read_is_reported_and_the_next_can(
    tmp_path: Path, error: Exception, code: str, words: str
) -> None:
    async with reading(tmp_path) as (page, voice, _):
        voice.error = error
        await page.say(type="speak", client_id="s1", entry_id=2)
        problem = await page.hear()
        voice.error = None
        await page.say(type="speak", client_id="s2", entry_id=2)
        assert (await page.hear())["type"] == "speech"
    assert (problem["code"], problem["client_id"]) == (code, "s1")
    assert words in problem["message"]


async def test_a_client_that_leaves_is_not_read_to(tmp_path: Path) -> None:
    async with reading(tmp_path) as (page, voice, _):
        voice.gate.clear()
        await page.say(type="speak", client_id="s1", entry_id=2)
        await page.ping()
        await page.socket.close()
        async with asyncio.timeout(PATIENCE_S):
            await voice.cancelled.wait()
    assert voice.said == ["Hello **you**"]
