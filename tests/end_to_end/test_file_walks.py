"""Forwarded voice notes, albums and edits of files on Telegram, Slack and Discord: real SDKs, fake platforms,
one gateway."""

from __future__ import annotations

import asyncio
import hashlib
from functools import partial
from pathlib import Path

from pipeline.domain.conversation import FORWARDED_MARK
from pipeline.llm.client import LlmRequest
from pipeline.llm.scripted import ScriptedLlm
from tests.end_to_end.test_off_the_record import SECRET, nothing_left
from tests.support.all_platforms import open_all_platforms
from tests.support.file_reader import PICTURE, SCALED, FakeFileReader
from tests.support.platform_acts import (
    ask,
    bot_said,
    forward_note,
    forward_picture,
    give,
    keep_pictures,
    press,
    send_file,
    send_pictures,
)
from tests.support.platforms.platform import FakePlatform, Place
from voice.transcription.scripted_transcriber import ScriptedTranscriber

SEEING = 'llm.model="openai/gpt-4o-mini"'


def _pictures(platform: FakePlatform, *of: str) -> list[bytes]:
    return [PICTURE + f"{one} on {platform.name}".encode() for one in of]


def _asked_on(llm: ScriptedLlm, platform: FakePlatform) -> list[LlmRequest]:
    """The calls of the model whose newest message names the platform."""
    return [one for one in llm.requests if platform.name in one.messages[-1].content]


def _seen(request: LlmRequest) -> list[str]:
    """What the pictures of the newest message show, in their order."""
    shown = (request.pictures[one.id] for one in request.messages[-1].pictures)
    return [one.removeprefix(SCALED).decode().partition(" on ")[0] for one in shown]


def _note(name: str, number: int) -> tuple[bytes, str]:
    """A sound, and the words in it."""
    return b"OggS" + f"{name} {number}".encode(), f"Transfer {number} euros by {name}."


async def _choose_what_is_done(llm: ScriptedLlm, platform: FakePlatform, chat: Place) -> None:
    choices = ("Only the transcript", "Sum it up", "Answer it")
    for number, label in enumerate(choices):
        before, (sound, words) = len(platform.bot_texts(chat)), _note(platform.name, number)
        await forward_note(platform, chat, sound)
        await platform.until(partial(bot_said, platform, chat, before, words))
        await platform.until(partial(bot_said, platform, chat, before, "What shall I do with it?"))
        assert len(_asked_on(llm, platform)) == max(0, number - 1), "nothing is done before the press"
        await press(platform, chat, label)
        answer = "You said: " if number else "The transcript is above."
        await platform.until(partial(bot_said, platform, chat, before, answer))
    summed_up, answered = _asked_on(llm, platform)
    assert [FORWARDED_MARK in one.messages[-1].content for one in (summed_up, answered)] == [True, True]
    systems = [str(one.messages[0]) for one in (summed_up, answered)]
    assert ["Sum it up in a few" in one for one in systems] == [True, False]


async def test_a_note_forwarded_in_the_platforms_own_way_waits_for_its_senders_choice(tmp_path: Path) -> None:
    notes = [_note(name, number) for name in ("telegram", "slack", "discord") for number in range(3)]
    heard = {hashlib.sha256(sound).hexdigest(): words for sound, words in notes}
    llm, transcriber = ScriptedLlm.echo(), ScriptedTranscriber(by_hash=heard)
    async with (
        open_all_platforms(tmp_path, llm=llm, transcriber=transcriber) as place,
        asyncio.TaskGroup() as group,
    ):
        for platform, chat in place.private():
            group.create_task(_choose_what_is_done(llm, platform, chat))


async def _send_an_album(llm: ScriptedLlm, platform: FakePlatform, chat: Place) -> None:
    words = f"which is a dog? ({platform.name})"
    album = ("a cat", "a dog", "a cow")
    await send_pictures(platform, chat, words, _pictures(platform, *album))
    await platform.until(partial(bot_said, platform, chat, 0, f"You said: {words}"))
    await ask(platform, chat, f"sure? ({platform.name})", "You said: sure?")
    first, later = _asked_on(llm, platform)
    assert first.messages[-1].content.startswith(f"{words}\n\n[Attached: picture")
    assert _seen(first) == list(album)
    assert len(platform.bot_texts(chat)) == 2
    remembered = [one for one in later.messages if one.pictures]
    assert [len(one.pictures) for one in remembered] == [3]


async def test_an_album_with_a_caption_is_one_message_with_one_answer_on_each_platform(
    tmp_path: Path,
) -> None:
    llm = ScriptedLlm.echo()
    async with open_all_platforms(tmp_path, SEEING, llm=llm, file_reader=FakeFileReader()) as place:
        async with asyncio.TaskGroup() as group:
            for platform, chat in place.private():
                group.create_task(_send_an_album(llm, platform, chat))
        counts = await place.harness.store.counts()
    assert (counts.inbox_open, counts.inbox_done) == (0, 6)


async def _share_off_the_record(llm: ScriptedLlm, platform: FakePlatform, chat: Place) -> None:
    await give(platform, chat, "otr")
    await platform.until(partial(bot_said, platform, chat, 0, "off the record"))
    words = f"look, {platform.name}: {SECRET}"
    await send_pictures(platform, chat, words, _pictures(platform, SECRET, f"another {SECRET}"))
    await platform.until(partial(bot_said, platform, chat, 1, f"You said: {words}"))
    content = f"{platform.name} has a {SECRET}".encode()
    await send_file(platform, chat, f"{SECRET}.txt", content, "text/plain")
    await platform.until(partial(bot_said, platform, chat, 2, "You said: "))
    pictures, document = _asked_on(llm, platform)
    assert _seen(pictures) == [SECRET, f"another {SECRET}"]
    assert f"{platform.name} has a {SECRET}" in document.messages[-1].content


async def test_off_the_record_files_are_read_and_no_byte_of_them_stays(tmp_path: Path) -> None:
    llm, data = ScriptedLlm.echo(), tmp_path / "data"
    async with open_all_platforms(tmp_path, SEEING, llm=llm, file_reader=FakeFileReader()) as place:
        async with asyncio.TaskGroup() as group:
            for platform, chat in place.private():
                group.create_task(_share_off_the_record(llm, platform, chat))
        await nothing_left(data)
        assert not [one for one in (data / "files").rglob("*") if one.is_file()]


async def _change_the_pictures(llm: ScriptedLlm, platform: FakePlatform, chat: Place) -> None:
    words, only_replaced = f"how many animals? ({platform.name})", platform.name == "telegram"
    message = await send_pictures(platform, chat, words, _pictures(platform, "a cat", "a dog"))
    await platform.until(partial(bot_said, platform, chat, 0, f"You said: {words}"))
    changes: list[tuple[int, tuple[str, ...]]] = [(1, ()), (1, ("a cow",))]
    for number, (kept, added) in enumerate([(0, ("a cow",))] if only_replaced else changes, 1):
        await keep_pictures(platform, chat, message, words, kept, _pictures(platform, *added))
        await platform.until(lambda: len(_asked_on(llm, platform)) == number + 1)  # noqa: B023 - used before the next turn
    asked = _asked_on(llm, platform)
    later = [["a cow", "a dog"]] if only_replaced else [["a cat"], ["a cat", "a cow"]]
    assert [_seen(one) for one in asked] == [["a cat", "a dog"], *later]
    assert all(one.messages[-1].content.startswith(words) for one in asked)
    # The answer takes the place of the one before.
    await ask(platform, chat, "sure?", "You said: sure?")
    assert len(platform.bot_texts(chat)) == 2


async def test_a_message_whose_pictures_are_changed_is_asked_again_with_those_that_it_has(
    tmp_path: Path,
) -> None:
    llm = ScriptedLlm.echo()
    async with (
        open_all_platforms(tmp_path, SEEING, llm=llm, file_reader=FakeFileReader()) as place,
        asyncio.TaskGroup() as group,
    ):
        for platform, chat in place.private():
            group.create_task(_change_the_pictures(llm, platform, chat))
    stored = [one for one in (tmp_path / "data" / "files").rglob("*") if one.is_file()]
    assert len(stored) == 6, "those of the last versions"


async def _send_each_kind(llm: ScriptedLlm, platform: FakePlatform, chat: Place) -> None:
    name, (screenshot, photo) = platform.name, _pictures(platform, "a screen", "a photo")
    words = f"what is wrong here? ({name})"
    await send_file(platform, chat, "Screenshot.png", screenshot, "image/png", words)
    await platform.until(partial(bot_said, platform, chat, 0, f"You said: {words}"))
    song = f"what is it about? ({name})"
    await send_file(platform, chat, "song.mp3", name.encode(), "audio/mpeg", song)
    await platform.until(partial(bot_said, platform, chat, 1, f"You said: {song}"))
    await forward_picture(platform, chat, photo)
    await platform.until(lambda: len(platform.bot_texts(chat)) == 3)
    seen, heard = _asked_on(llm, platform)
    assert _seen(seen) == ["a screen"]
    assert "what is said in it follows]" in heard.messages[-1].content
    assert f"sung on {name}" in heard.messages[-1].content
    (forwarded,) = [
        one for one in llm.requests if SCALED + photo.removeprefix(PICTURE) in one.pictures.values()
    ]
    assert _seen(forwarded) == ["a photo"]
    assert forwarded.messages[-1].content.startswith(FORWARDED_MARK)


async def test_a_screenshot_a_sound_file_and_a_forwarded_picture_are_taken_for_what_they_are(
    tmp_path: Path,
) -> None:
    names, llm = ("telegram", "slack", "discord"), ScriptedLlm.echo()
    heard = {hashlib.sha256(one.encode()).hexdigest(): f"sung on {one}" for one in names}
    transcriber = ScriptedTranscriber(["said in a round video"], by_hash=heard)
    async with open_all_platforms(
        tmp_path, SEEING, llm=llm, transcriber=transcriber, file_reader=FakeFileReader()
    ) as place:
        async with asyncio.TaskGroup() as group:
            for platform, chat in place.private():
                group.create_task(_send_each_kind(llm, platform, chat))
        telegram = place.telegram
        ann = telegram.person("ann")
        chat = telegram.private_chat(ann)
        telegram.send(chat, ann, "video_note", b"mp4", length=240, duration=1)
        await telegram.until(partial(bot_said, telegram, chat, 3, "You said: said in a round video"))
