"""A room's voice note that is not for the bot: what is left of it, which is nothing."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.access.policy import AccessPolicy, AccessRule, Allowed, Denied
from gateway.agents.routes import AgentRoutes
from gateway.agents.speech_lookup import SpeechLookup
from gateway.channels.registry import ChannelRegistry
from gateway.config import DEFAULT_AGENT, AgentSpeech
from gateway.runtime.metrics import Telemetry
from gateway.speech.voice_notes import VoiceNoteTranscriber
from gateway.storage.memory import MemoryStore
from gateway.storage.speech import SpeakerKey, SpeakerPreferences
from pipeline.domain.clock import ManualClock, SystemClock
from pipeline.domain.messages import InboundMessage
from pipeline.runtime.ports import PartialTranscription, TranscriptionQueued
from tests.end_to_end.test_spoken import room_note
from tests.support.harness import open_gateway
from tests.support.posting_channel import MemoryPosts
from voice.settings import TranscriptionSettings
from voice.transcription.cached_transcriber import CachedTranscriber
from voice.transcription.scripted_transcriber import ScriptedTranscriber
from voice.transcription.voice_note import VoiceIntake

RULE = AccessRule.of(mode="list", allow=["room:c1"], hear_rooms=True)


async def test_nothing_of_a_note_for_somebody_else_stays_in_the_store(tmp_path: Path) -> None:
    posts = MemoryPosts()
    transcriber = ScriptedTranscriber(["a secret recipe", "Parlour, are you there?"])
    async with open_gateway(tmp_path, posts=posts, rule=RULE, transcriber=transcriber) as harness:
        note = room_note(posts, "the-file", author="somebody")
        overheard = replace(note, text="my caption", quoted="a quotation")
        await posts.bring(overheard)
        await posts.bring(room_note(posts, "2", addressed=True, author="bob"))
        await posts.until(lambda: "You said: bob: Parlour" in "".join(posts.texts()))
        assert (await posts.bring(overheard)).status == "duplicate"
        assert len(harness.llm.requests) == 1
    kept = everything_in(tmp_path / "parlour.sqlite3")
    assert "are you there?" in kept
    for part in ("recipe", "caption", "quotation", "somebody", 'handle":"the-file'):
        assert part not in kept, f"the note left {part!r} behind"


async def test_a_note_for_somebody_else_that_ended_the_process_each_time_is_set_aside_in_silence(
    tmp_path: Path,
) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, posts=posts, rule=RULE, transcriber=ScriptedTranscriber()) as harness:
        await posts.bring(room_note(posts, "1", addressed=True))
        await posts.until(lambda: bool(posts.texts()))
    with sqlite3.connect(tmp_path / "parlour.sqlite3") as db:
        body = "json_set(body, '$.if_named', json('true'))"
        db.execute(f"UPDATE inbox SET outcome = NULL, attempts = 3, body = {body}")
        db.execute("INSERT INTO deaths SELECT seq, 3, 3 FROM inbox")
    db.close()
    said = len(posts.texts())
    async with open_gateway(
        tmp_path, posts=posts, rule=RULE, transcriber=ScriptedTranscriber(["yes"])
    ) as harness:
        await posts.bring(room_note(posts, "2", addressed=True))
        await posts.until(lambda: "You said: ann: yes" in "".join(posts.texts()))
        assert len(posts.texts()) == said + 1
        assert not (await harness.store.open_threads())


async def test_what_may_not_be_for_the_bot_is_heard_without_a_memory() -> None:
    posts, store, clock = MemoryPosts(), MemoryStore(), SystemClock()
    await store.open()
    heard = ScriptedTranscriber.always("a secret recipe")
    settings = TranscriptionSettings(model_dir=Path("/nowhere"))
    cached = CachedTranscriber(heard, store.voices, clock, settings_key="test")
    transcriber = VoiceNoteTranscriber(
        channel_of=ChannelRegistry([posts]).of,
        intake=VoiceIntake(cached, settings),
        forgetful=VoiceIntake(heard, settings),
        preferences=store.voices,
        speech_of=SpeechLookup({DEFAULT_AGENT: AgentSpeech()}, AgentRoutes(), store),
        max_bytes=1_000,
        telemetry=Telemetry(clock),
    )
    note = room_note(posts, "1")
    speaker = SpeakerKey(channel=posts.name, account=posts.account, user="ann")
    for _ in range(2):
        await transcriber.transcribe(replace(note, if_named=True), notify_no_one)
        assert (await store.voices.preferences_of(speaker)) == SpeakerPreferences()
    assert len(heard.calls) == 2
    await transcriber.transcribe(note, notify_no_one)
    await transcriber.transcribe(note, notify_no_one)
    assert len(heard.calls) == 3
    assert (await store.voices.preferences_of(speaker)).language == "en"


@pytest.mark.parametrize(("change", "enters"), [("voice", True), ("audio", False), ("edited", False)])
async def test_only_what_somebody_says_now_is_listened_to(change: str, *, enters: bool) -> None:
    posts, store, clock = MemoryPosts(), MemoryStore(), ManualClock()
    await store.open()
    policy = AccessPolicy(book=store.pairings, clock=clock, rules={(posts.name, posts.account): RULE})
    verdict = await policy.authorise(changed(room_note(posts, "1"), change))
    assert verdict == Allowed(if_named=True) if enters else isinstance(verdict, Denied)


def changed(note: InboundMessage, change: str) -> InboundMessage:
    assert note.voice is not None
    if change == "edited":
        return replace(note, edited=True)
    return replace(note, voice=replace(note.voice, kind="audio" if change == "audio" else "voice"))


async def notify_no_one(_: TranscriptionQueued | PartialTranscription) -> None:
    return None


def everything_in(file: Path) -> str:
    """Every cell of every table."""
    db = sqlite3.connect(file)
    try:
        names = [
            name
            for (name,) in db.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
            )
        ]
        return "\n".join(str(row) for name in names for row in db.execute(f'SELECT * FROM "{name}"'))
    finally:
        db.close()
