"""Decoding: every accepted container, and files that mean harm."""

from __future__ import annotations

import struct
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.voice.clips import CLIPS, NOTES, amr_bomb, wav
from tests.voice.hostile import flac_declaring, ogg_declaring
from voice.audio.containers import Container
from voice.audio.decoding import AudioBlocks, Block
from voice.errors import AudioRefused
from voice.transcript import SAMPLE_RATE

CONTAINERS = {
    "oga": "ogg",
    "webm": "webm",
    "m4a": "mp4",
    "mp3": "mp3",
    "wav": "wav",
    "flac": "flac",
    "amr": "amr",
    "aac": "aac",
}

SDP = b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\nc=IN IP4 127.0.0.1\r\nm=audio 5004 RTP/AVP 0\r\n"
M3U8 = b"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nfile:///etc/passwd\n"
FFCONCAT = b"ffconcat version 1.0\nfile '/etc/passwd'\n"
MPD = b'<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><BaseURL>file:///</BaseURL></MPD>'


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A file, decoded to its end."""

    samples: Block
    seconds: float
    truncated: bool
    container: str


def heard(data: bytes, *, max_bytes: int = 20 * 1024 * 1024, max_seconds: float = 300.0) -> Heard:
    blocks = AudioBlocks(data, max_bytes=max_bytes, max_seconds=max_seconds)
    samples = np.concatenate(list(blocks))
    assert blocks.samples == samples.size
    return Heard(
        samples=samples,
        seconds=samples.size / SAMPLE_RATE,
        truncated=blocks.truncated,
        container=blocks.container,
    )


def refusal(data: bytes) -> AudioRefused:
    with pytest.raises(AudioRefused) as caught:
        heard(data)
    assert caught.value.permanent
    assert str(caught.value).endswith(".")
    return caught.value


def assert_audio_or_refusal(data: bytes) -> None:
    try:
        audio = heard(data, max_seconds=10.0)
    except AudioRefused as error:
        code = error.code
    else:
        assert 0 < audio.seconds <= 10.0
        return
    assert code in {"damaged", "no_audio", "unknown_format"}


def test_the_notes_cover_every_accepted_container() -> None:
    assert set(NOTES) == set(CONTAINERS)


@pytest.mark.parametrize("suffix", sorted(CONTAINERS))
def test_every_container_gives_the_same_three_seconds_of_mono(suffix: str) -> None:
    audio = heard(NOTES[suffix])
    assert audio.container == CONTAINERS[suffix]
    assert audio.samples.dtype == np.int16
    assert audio.samples.ndim == 1
    assert audio.seconds == pytest.approx(2.99, abs=0.06)
    assert np.abs(audio.samples).max() > 3_000
    assert not audio.truncated


def test_a_wav_at_the_target_rate_is_decoded_sample_for_sample() -> None:
    data = CLIPS["jfk"].data
    samples = heard(data).samples
    raw = np.frombuffer(data[-2 * samples.size :], dtype="<i2")
    assert np.array_equal(samples, raw)


def test_stereo_at_another_rate_becomes_mono_at_sixteen_kilohertz() -> None:
    left_and_right = np.tile(np.array([8000, -8000], dtype="<i2"), 44_100)
    audio = heard(wav(left_and_right.tobytes(), rate=44_100, channels=2))
    assert audio.seconds == pytest.approx(1.0, abs=0.01)
    assert np.abs(audio.samples).max() < 300


def test_an_id3_tag_before_the_audio_is_stepped_over() -> None:
    tag = b"ID3\x04\x00\x00" + bytes([0, 0, 1, 0]) + bytes(128)
    assert heard(tag + NOTES["aac"]).container == "aac"
    assert heard(tag + NOTES["flac"]).seconds == pytest.approx(2.99, abs=0.01)


@pytest.mark.parametrize("text", [SDP, M3U8, FFCONCAT, MPD, b"GIF89a" + bytes(90), b"%PDF-1.7", b"\x00"])
def test_formats_that_are_not_audio_are_refused_by_their_first_bytes(text: bytes) -> None:
    assert refusal(text).code == "unknown_format"


def test_a_playlist_behind_a_tag_is_refused_too() -> None:
    assert refusal(b"ID3\x04\x00\x00\x00\x00\x00\x00" + M3U8).code == "unknown_format"


@pytest.mark.parametrize("rate", [1, 100, 7_999, 96_001, 4_000_000])
def test_a_sample_rate_no_one_records_with_is_refused(rate: int) -> None:
    assert refusal(wav(bytes(7_000), rate=rate)).code == "damaged"


def test_two_hundred_and_fifty_five_channels_are_refused() -> None:
    assert refusal(wav(bytes(255 * 2 * 100), channels=255)).code == "damaged"


def test_a_codec_that_is_not_on_the_list_is_refused() -> None:
    data = bytearray(wav(bytes(8_000)))
    struct.pack_into("<H", data, 20, 0x0160)  # Windows Media Audio, in a WAV header
    assert refusal(bytes(data)).code in {"unknown_format", "damaged"}


@pytest.mark.parametrize("data", [b"", wav(b"")])
def test_a_file_without_a_single_sample_has_no_audio(data: bytes) -> None:
    assert refusal(data).code == "no_audio"


@pytest.mark.parametrize("suffix", sorted(CONTAINERS))
def test_the_first_bytes_alone_are_refused(suffix: str) -> None:
    assert refusal(NOTES[suffix][:24]).code in {"damaged", "no_audio", "unknown_format"}


@pytest.mark.parametrize("suffix", ["oga", "webm", "mp3", "wav", "flac", "amr", "aac"])
def test_a_file_that_ends_too_early_is_heard_as_far_as_it_goes(suffix: str) -> None:
    whole = NOTES[suffix]
    audio = heard(whole[: len(whole) * 2 // 3])
    assert 0.5 < audio.seconds < 2.9


def test_a_file_cut_before_its_index_is_refused_in_words() -> None:
    whole = NOTES["m4a"]
    error = refusal(whole[: len(whole) // 2])
    assert error.code in {"damaged", "no_audio"}
    assert "Please" in str(error)


def test_too_many_bytes_are_refused_before_anything_reads_them() -> None:
    with pytest.raises(AudioRefused, match=r"larger than 0\.00391 MB") as caught:
        heard(CLIPS["jfk"].data, max_bytes=4096)
    assert caught.value.code == "too_large"


def test_longer_audio_is_cut_at_the_limit_and_says_so() -> None:
    audio = heard(CLIPS["jfk"].data, max_seconds=4.0)
    assert audio.truncated
    assert audio.seconds == 4.0
    assert audio.samples.size == 64_000


def test_audio_of_exactly_the_limit_is_not_truncated() -> None:
    audio = heard(wav(bytes(2 * 16_000)), max_seconds=1.0)
    assert audio.seconds == 1.0
    assert not audio.truncated


@pytest.mark.parametrize("data", [flac_declaring(8), ogg_declaring(8)])
def test_a_file_that_declares_eight_hours_is_refused_in_words(data: bytes) -> None:
    error = refusal(data)
    assert error.code == "too_long"
    assert str(error) == (
        "That recording is 8 hours long; I can listen to at most 5 minutes. Please send a shorter one."
    )


def test_a_file_that_declares_little_more_than_allowed_is_cut() -> None:
    audio = heard(NOTES["flac"], max_seconds=1.0)
    assert audio.truncated
    with pytest.raises(AudioRefused, match=r"is 3 seconds long; I can listen to at most 0\.5 seconds"):
        heard(NOTES["oga"], max_seconds=0.5)


def test_a_wav_written_to_a_pipe_declares_nothing() -> None:
    data = bytearray(NOTES["wav"])
    struct.pack_into("<I", data, 4, 0xFFFFFFFF)
    struct.pack_into("<I", data, data.index(b"data") + 4, 0xFFFFFFFF)
    assert heard(bytes(data)).seconds == pytest.approx(2.99, abs=0.01)


def test_six_hours_of_silence_cost_the_memory_of_five_minutes() -> None:
    program = textwrap.dedent(
        """
        import resource
        from tests.voice.clips import amr_bomb
        from voice.audio.decoding import AudioBlocks
        data = amr_bomb(hours=6)
        before = resource.getrusage(resource.RUSAGE_SELF)
        audio = AudioBlocks(data, max_bytes=20 * 1024 * 1024, max_seconds=300)
        samples = [block for block in audio]
        after = resource.getrusage(resource.RUSAGE_SELF)
        print(audio.samples / 16_000, audio.truncated)
        print(after.ru_maxrss - before.ru_maxrss, after.ru_utime - before.ru_utime)
        """
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    seconds, truncated, kilobytes, cpu_seconds = run.stdout.split()
    assert (seconds, truncated) == ("300.0", "True")
    assert int(kilobytes) < 150_000
    assert float(cpu_seconds) < 20.0
    assert len(amr_bomb(hours=6)) > 13_000_000


@pytest.mark.parametrize("suffix", sorted(CONTAINERS))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_flipped_bits_and_cuts_end_in_audio_or_in_a_refusal(suffix: str, data: st.DataObject) -> None:
    broken = bytearray(NOTES[suffix])
    for position in data.draw(st.lists(st.integers(0, len(broken) - 1), min_size=1, max_size=40)):
        broken[position] ^= data.draw(st.integers(1, 255))
    end = data.draw(st.integers(16, len(broken)))
    assert_audio_or_refusal(bytes(broken[:end]))


@settings(max_examples=60, deadline=None)
@given(
    magic=st.sampled_from(
        [
            b"OggS",
            b"\x1a\x45\xdf\xa3",
            b"fLaC",
            b"#!AMR\n",
            b"\xff\xf1",
            b"\xff\xfb",
            b"\x00\x00\x00\x18ftyp",
            b"",
        ]
    ),
    tail=st.binary(max_size=4096),
)
def test_garbage_behind_a_good_magic_ends_in_audio_or_in_a_refusal(magic: bytes, tail: bytes) -> None:
    assert_audio_or_refusal(magic + tail)


def test_a_process_without_memory_does_not_blame_the_file() -> None:
    class Starved(AudioBlocks):
        def _decoded(self, container: Container) -> Iterator[Block]:
            raise MemoryError

    with pytest.raises(MemoryError):
        list(Starved(NOTES["oga"], max_bytes=10**6, max_seconds=60.0))
