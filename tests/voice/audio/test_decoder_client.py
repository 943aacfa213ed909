"""The decoder's children: what they answer, what holds them, and what happens when they fail."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import pytest_asyncio

from tests.voice.audio import decoder_child
from tests.voice.clips import CLIPS, NOISE, NOTES, SPEECH, samples_of, wav
from voice.audio.decoder_client import Decoder
from voice.audio.segments import SpeechSegment
from voice.errors import AudioRefused, TranscriberUnavailable, TranscriptionTimeout
from voice.settings import TranscriptionSettings
from voice.workers.child import command

SETTINGS = TranscriptionSettings(model_dir=Path("no-model-is-needed"))


@cache
def long_speech() -> bytes:
    """A minute and a half of it."""
    return wav((b"".join(samples_of(clip) for clip in SPEECH) * 2)[: 90 * 32_000])


@pytest.fixture
async def decoder() -> AsyncIterator[Decoder]:
    decoder = Decoder(SETTINGS, deadline_s=120.0)
    yield decoder
    await decoder.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def working() -> AsyncIterator[Decoder]:
    """One for the tests that leave its children as they are."""
    decoder = Decoder(SETTINGS, deadline_s=120.0)
    yield decoder
    await decoder.close()


in_one_loop = pytest.mark.asyncio(loop_scope="module")
"""Of the tests that share `working`."""


def ignore(piece: SpeechSegment) -> None:
    """Pieces that a test does not look at."""


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def held_by(pid: int) -> set[str]:
    """What kinds of things a process has open."""
    return {str(path.readlink()).split(":")[0] for path in Path(f"/proc/{pid}/fd").iterdir()}


def limits_of(pid: int) -> dict[str, list[str]]:
    """The soft and the hard limit of each kind."""
    rows = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return {row[:26].strip(): row[26:].split()[:2] for row in rows}


async def test_a_note_in_any_container_is_one_piece_of_speech(decoder: Decoder) -> None:
    for suffix, data in NOTES.items():
        pieces: list[SpeechSegment] = []
        decoded = await decoder.decode(data, on_segment=pieces.append)
        assert decoded.segments == len(pieces) == 1, suffix
        assert decoded.seconds == pytest.approx(2.99, abs=0.06)
        assert not decoded.truncated
        assert pieces[0].seconds == pytest.approx(sum(end - start for start, end in pieces[0].spans))
    assert len(decoder.pids) == 1


@in_one_loop
async def test_bare_samples_are_searched_and_cut_in_the_same_way(working: Decoder) -> None:
    clip = CLIPS["jfk"]
    from_file: list[SpeechSegment] = []
    bare: list[SpeechSegment] = []
    await working.decode(clip.data, on_segment=from_file.append)
    decoded = await working.decode(samples_of(clip), form="pcm", on_segment=bare.append)
    assert bare == from_file
    assert len(bare) == 3  # he pauses twice for more than a second
    assert [[piece.pcm] for piece in bare] == [cuts(samples_of(clip), piece) for piece in bare]
    assert decoded.container == "pcm"
    assert decoded.seconds == pytest.approx(11.0)


def cuts(pcm: bytes, piece: SpeechSegment) -> list[bytes]:
    return [pcm[round(start * 16_000) * 2 : round(end * 16_000) * 2] for start, end in piece.spans]


@in_one_loop
async def test_silence_noise_and_a_click_have_no_pieces(working: Decoder) -> None:
    for clip in NOISE:
        assert (await working.decode(clip.data, on_segment=ignore)).segments == 0, clip.name
    short = await working.decode(samples_of(CLIPS["jfk"])[:9_000], form="pcm", on_segment=ignore)
    assert (short.segments, short.seconds) == (0, 4_500 / 16_000)
    assert (await working.decode(b"", form="pcm", on_segment=ignore)).seconds == 0


@in_one_loop
async def test_pieces_of_a_long_recording_come_while_the_rest_is_decoded(working: Decoder) -> None:
    pieces: list[SpeechSegment] = []
    answered = asyncio.Event()
    begun = asyncio.Event()

    def take(piece: SpeechSegment) -> None:
        assert not answered.is_set()
        pieces.append(piece)
        begun.set()

    async with asyncio.TaskGroup() as group:
        work = group.create_task(working.decode(long_speech(), on_segment=take))
        await begun.wait()
        assert len(pieces) < 5
        assert not work.done()
    assert work.result().segments == len(pieces) > 6
    assert [piece.index for piece in pieces] == list(range(len(pieces)))
    assert all(piece.seconds <= 25 for piece in pieces)
    ends = [time for piece in pieces for span in piece.spans for time in span]
    assert ends == sorted(ends)


async def test_a_refusal_reaches_the_caller_and_only_much_damage_costs_the_child(decoder: Decoder) -> None:
    await decoder.warm_up()
    (pid,) = decoder.pids
    with pytest.raises(AudioRefused) as caught:
        await decoder.decode(b"%PDF-1.7", on_segment=ignore)
    assert caught.value.code == "unknown_format"
    for _ in range(8):
        assert decoder.pids == (pid,)
        with pytest.raises(AudioRefused) as caught:
            await decoder.decode(wav(bytes(7_000), rate=1), on_segment=ignore)
        assert caught.value.code == "damaged"
    assert decoder.pids == ()
    assert (await decoder.decode(NOTES["oga"], on_segment=ignore)).segments == 1
    assert pid not in decoder.pids


async def test_too_many_bytes_are_refused_without_a_child() -> None:
    decoder = Decoder(replace(SETTINGS, max_bytes=100))
    with pytest.raises(AudioRefused, match="larger than"):
        await decoder.decode(bytes(101), on_segment=ignore)
    assert decoder.pids == ()


async def test_two_recordings_are_decoded_at_once_and_the_third_waits(decoder: Decoder) -> None:
    async with asyncio.TaskGroup() as group:
        works = [group.create_task(decoder.decode(NOTES["oga"], on_segment=ignore)) for _ in range(5)]
    assert {work.result().segments for work in works} == {1}
    assert len(decoder.pids) == 2


async def test_a_child_that_dies_once_is_replaced_and_no_piece_comes_twice(decoder: Decoder) -> None:
    pieces: list[SpeechSegment] = []

    def take(piece: SpeechSegment) -> None:
        if not pieces:
            os.kill(decoder.pids[0], signal.SIGKILL)
        pieces.append(piece)

    decoded = await decoder.decode(long_speech(), on_segment=take)
    assert [piece.index for piece in pieces] == list(range(decoded.segments))


async def test_a_file_that_kills_the_decoder_twice_is_damaged(decoder: Decoder) -> None:
    victims: list[int] = []

    def kill(piece: SpeechSegment) -> None:
        victims.append(decoder.pids[0])
        os.kill(decoder.pids[0], signal.SIGKILL)

    with pytest.raises(AudioRefused) as caught:
        await decoder.decode(long_speech(), on_segment=kill)
    assert caught.value.code == "damaged"
    assert len(set(victims)) == 2
    assert (await decoder.decode(NOTES["oga"], on_segment=ignore)).segments == 1


async def test_a_decoder_that_hangs_is_killed_at_its_deadline() -> None:
    decoder = Decoder(SETTINGS, deadline_s=0.2)
    try:
        await decoder.warm_up()
        (pid,) = decoder.pids
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(TranscriptionTimeout, match="Please send it again"):
            await decoder.decode(NOTES["oga"], on_segment=ignore)
        assert decoder.pids == ()
        await decoder.close()
        assert not is_alive(pid)
    finally:
        await decoder.close()


async def test_cancelling_kills_the_child_at_work(decoder: Decoder) -> None:
    begun = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        work = group.create_task(decoder.decode(long_speech(), on_segment=lambda piece: begun.set()))
        await begun.wait()
        (pid,) = decoder.pids
        work.cancel()
    assert work.cancelled()
    assert decoder.pids == ()
    await decoder.close()
    assert not is_alive(pid)


async def test_a_child_is_replaced_after_its_share_of_files() -> None:
    decoder = Decoder(replace(SETTINGS, recycle_after=2))
    try:
        pids = []
        for _ in range(4):
            await decoder.decode(samples_of(CLIPS["silence"]), form="pcm", on_segment=ignore)
            pids.append(decoder.pids)
        assert pids[0] != ()
        assert pids[1] == ()
        assert pids[2] not in {(), pids[0]}
    finally:
        await decoder.close()


async def test_closing_ends_every_child_and_refuses_further_work(decoder: Decoder) -> None:
    await decoder.warm_up()
    (pid,) = decoder.pids
    await decoder.close()
    assert not is_alive(pid)
    with pytest.raises(TranscriberUnavailable, match="shutting down"):
        await decoder.decode(NOTES["oga"], on_segment=ignore)


async def test_closing_waits_for_a_child_that_is_being_started() -> None:
    decoder = Decoder(SETTINGS)
    async with asyncio.TaskGroup() as group:
        work = group.create_task(refusal(decoder, NOTES["oga"]))
        await asyncio.sleep(0)  # it is at the start of a child now
        await decoder.close()
        assert work.done()
    assert isinstance(work.result(), TranscriberUnavailable)


async def refusal(decoder: Decoder, data: bytes) -> Exception | None:
    try:
        await decoder.decode(data, on_segment=ignore)
    except (AudioRefused, TranscriberUnavailable) as error:
        return error
    return None


async def test_a_decoder_that_was_taken_over_can_neither_flood_nor_confuse_the_gateway() -> None:
    program = command("tests.voice.audio.decoder_child")
    decoder = Decoder(replace(SETTINGS, max_seconds=60.0), program=program, on_line=lambda line: None)
    heard: list[SpeechSegment] = []
    try:
        assert (await decoder.decode(b"well", on_segment=heard.append)).segments == len(heard) == 1
        async with asyncio.timeout(60):
            for wish in (b"brackets", b"flood", b"long", *decoder_child.LIES, *decoder_child.PIECES):
                heard.clear()
                error = await refusal_of(decoder, wish, heard)
                assert isinstance(error, AudioRefused), wish
                assert error.code == "damaged", wish
                assert sum(piece.seconds for piece in heard) <= 60.0, wish
    finally:
        await decoder.close()


async def refusal_of(decoder: Decoder, data: bytes, heard: list[SpeechSegment]) -> AudioRefused | None:
    with pytest.raises(AudioRefused) as caught:
        await decoder.decode(data, on_segment=heard.append)
    return caught.value


@pytest.mark.skipif(sys.platform != "linux", reason="reads what the kernel knows of the child")
@in_one_loop
async def test_a_child_holds_nothing_but_its_pipes_and_can_open_no_more(working: Decoder) -> None:
    await working.decode(NOTES["oga"], on_segment=ignore)
    (pid,) = working.pids
    assert held_by(pid) == {"pipe"}
    limits = limits_of(pid)
    assert limits["Max open files"] == ["0", "0"]
    assert limits["Max file size"] == ["0", "0"]
    assert limits["Max core file size"] == ["0", "0"]
    assert limits["Max address space"] == [str(512 * 1024**2)] * 2
    assert int(limits["Max cpu time"][0]) <= 30
