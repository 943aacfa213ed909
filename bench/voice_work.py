"""The recordings of the voice bench: speech of several lengths, the same with noise, and no speech."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.voice.clips import CLIPS, NOISE, SPEECH, samples_of
from tests.voice.notes import note
from tests.voice.sounds import WITHOUT_SPEECH, cut, in_noise, joined, voiced

_LONG = ("jfk", "lj001-0001", "lv_0870", "lj001-0003", "lv_0890", "lj001-0005", "lj001-0004")
"""A minute with their pauses."""
_CROWD = 6
_SNR_DB = 5.0
_Encoded = Callable[[bytes, str], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A voice note and its words."""

    note: bytes
    transcript: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """All recordings of a run; OGG/Opus throughout."""

    by_length: Mapping[str, Sequence[bytes]]
    """Short notes by their length as the figures name it: `3s`, `5s`, `11s`."""
    long: Mapping[str, Said]
    """`60s` and `120s`."""
    clean: Sequence[Said]
    noisy: Sequence[Said]
    silent: Sequence[bytes]
    """Recordings without speech."""
    crowd: Sequence[bytes]
    """Notes that come at the same moment."""
    sentence: bytes
    """Samples up to the end of the voice: what is spoken live, a whole sentence of five seconds."""
    rounds: int


def full(encoded: _Encoded = note) -> Work:
    """The recordings of the published figures: about five minutes on two cores. `encoded` makes a file of the
    named kind of samples."""
    pcm = {clip.name: samples_of(clip) for clip in SPEECH}
    five = [pcm["lj001-0004"], pcm["lv_0890"], cut(pcm["lj001-0005"], 5), cut(pcm["lj001-0001"], 5)]
    five += [cut(pcm["lj001-0003"], 5), cut(pcm["jfk"], 5)]
    lengths = {
        "3s": [pcm["lv_0880"], cut(pcm["lj001-0003"], 3), cut(pcm["lv_0870"], 3)],
        "5s": five[:3],
        "11s": [
            pcm["jfk"],
            joined([pcm["lv_0890"], pcm["lj001-0004"]], seed=1),
            joined([pcm["lv_0880"], pcm["lj001-0005"]], seed=2),
        ],
    }
    return Work(
        by_length={length: [encoded(one, "ogg") for one in some] for length, some in lengths.items()},
        long={
            "60s": _long(_LONG, encoded, seed=3),
            "120s": _long((*_LONG, *reversed(_LONG)), encoded, seed=4),
        },
        clean=[Said(note=encoded(pcm[clip.name], "ogg"), transcript=clip.transcript) for clip in SPEECH],
        noisy=[_noisy(name, encoded, seed) for seed in (5, 6) for name in pcm],
        silent=[
            *(encoded(samples_of(clip), "ogg") for clip in NOISE),
            *(encoded(make(), "ogg") for make in WITHOUT_SPEECH.values()),
        ],
        crowd=[encoded(one, "ogg") for one in five[:_CROWD]],
        sentence=voiced(pcm["lv_0890"]),
        rounds=3,
    )


def tiny() -> Work:
    """The smallest set that gives every figure: it shows that the bench runs; its figures mean nothing."""
    pcm = samples_of(CLIPS["lj001-0002"])
    said = Said(note=note(pcm, "ogg"), transcript=CLIPS["lj001-0002"].transcript)
    return Work(
        # What is the same everywhere is compared once.
        by_length={"3s": [said.note], "5s": [said.note], "11s": [said.note]},
        long={"60s": said, "120s": said},
        clean=[said],
        noisy=[said],
        silent=[note(cut(samples_of(CLIPS["silence"]), 1), "ogg")],
        crowd=[said.note],
        sentence=voiced(pcm),
        rounds=1,
    )


def _long(names: Sequence[str], encoded: _Encoded, *, seed: int) -> Said:
    return Said(
        note=encoded(joined([samples_of(CLIPS[name]) for name in names], seed=seed), "ogg"),
        transcript=" ".join(CLIPS[name].transcript for name in names),
    )


def _noisy(name: str, encoded: _Encoded, seed: int) -> Said:
    others = [samples_of(clip) for clip in SPEECH if clip.name != name]
    pcm = in_noise(samples_of(CLIPS[name]), others, snr_db=_SNR_DB, seed=seed)
    return Said(note=encoded(pcm, "ogg"), transcript=CLIPS[name].transcript)
