"""The speech synthesis process: text in, voice messages out, one after the other, until stdin closes.

Started by `voice.workers.child` with `python -m`; never imported by the gateway. The only program that
imports piper, which is GPL-3.0-or-later and an optional installation: it runs as a separate program and is
never linked into ours.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # it ships no types

from voice.errors import SpeakerUnavailable
from voice.synthesis.opus_encoding import encode
from voice.workers.frames import WorkerFrame, error_to_wire
from voice.workers.sandbox import Send, die_with_parent, take_over_pipes

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ADDRESS_SPACE_BYTES = 2 * 1024**3
"""Measured: 0.9 GB reserved and 0.4 GB touched by the longest text."""
_MAX_REQUEST_BYTES = 64 * 1024
_VOICES_LOADED = 2
PART_CHARACTERS = 220
"""Synthesised at a time. Memory grows faster than the text: 1,400 characters at once take 1.4 GB."""
_PAUSE_S = 0.18
"""Seconds between two parts, which the model synthesises independently."""
_NICENESS = 5
"""Transcription has priority: the written answer has arrived, and other users' notes may be waiting."""
_SENTENCE = re.compile(r"(?<=[.!?…:;])\s+|\n+")
_CLAUSE = re.compile(r"(?<=[,–—)])\s+")  # noqa: RUF001 - the dash is meant
_PHONEMES = re.compile(r"\[\[|\]\]")

NOT_INSTALLED = "Piper is not installed: run `pip install 'parlour[speech]'`, or turn voice replies off."
_NO_WORDS = "There is nothing in the text that can be said."


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve requests on stdin and stdout until the parent closes stdin or dies."""
    options = _parse(arguments)
    die_with_parent(options.parent_pid)
    _limit()
    requests, send = take_over_pipes(_MAX_REQUEST_BYTES)
    try:
        import piper  # noqa: F401, PLC0415 - optional, and its absence is an answer
    except ImportError as error:
        sys.stderr.write(f"piper cannot be loaded: {error}\n")
        send(WorkerFrame(header={"kind": "unavailable", **error_to_wire(SpeakerUnavailable(NOT_INSTALLED))}))
        return 1
    send(WorkerFrame(header={"kind": "ready"}))
    voices = _Voices(options.voices_dir, _loaded)
    while True:
        _serve(requests.get(), voices, send)


def parts_of(text: str) -> Iterator[str]:
    """`text` in parts of at most 220 characters, split after sentences, else after clauses, else at spaces.
    Only white space is left out."""
    for sentence in _SENTENCE.split(text):
        yield from _packed(_CLAUSE.split(sentence.strip()))


class _Voices:
    """The voices in memory: the most recently used ones."""

    def __init__(self, folder: Path, load: Callable[[Path], Any]) -> None:
        self._folder = folder
        self._load = load
        self._loaded: OrderedDict[str, Any] = OrderedDict()

    def get(self, name: str) -> Any:
        """Raises SpeakerUnavailable for a voice whose files cannot be read."""
        if name not in self._loaded:
            try:
                self._loaded[name] = self._load(self._folder / f"{name}.onnx")
            except Exception as error:  # piper and onnxruntime raise any exception for a broken file
                raise SpeakerUnavailable(
                    f"The voice {name} in {self._folder} cannot be loaded ({error}): fetch it again."
                ) from error
            while len(self._loaded) > _VOICES_LOADED:
                self._loaded.popitem(last=False)
        self._loaded.move_to_end(name)
        return self._loaded[name]


def _loaded(model: Path) -> Any:
    """The voice of a file, with its description beside it; raises whatever the libraries raise.

    As `PiperVoice.load`, for a process that speaks now and then beside others. A plan of which values share
    memory takes three quarters of the loading time, and the arena needs no more without it, since each text
    has other lengths; a thread that waits for its part of a layer sleeps.
    """
    from piper import PiperConfig, PiperVoice  # noqa: PLC0415 - optional, as in `main`

    options = onnxruntime.SessionOptions()
    options.enable_mem_reuse = options.enable_mem_pattern = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(
        str(model), sess_options=options, providers=["CPUExecutionProvider"]
    )
    about = json.loads(model.with_name(f"{model.name}.json").read_bytes())
    return PiperVoice(session=session, config=PiperConfig.from_dict(about))


def _serve(request: WorkerFrame, voices: _Voices, send: Send) -> None:
    """Answer one request with exactly one final frame; an unexpected error ends the process."""
    job = {"job": request.header["job"], "final": True}
    try:
        answer, body = _answer(voices.get(str(request.header["voice"])), request)
    except SpeakerUnavailable as error:
        answer, body = {"kind": "refused", **error_to_wire(error)}, b""
    send(WorkerFrame(header={**answer, **job}, body=body))


def _answer(voice: Any, request: WorkerFrame) -> tuple[dict[str, Any], bytes]:
    if request.header["kind"] == "warm_up":
        _samples(voice, "Hello.")
        return {"kind": "warm"}, b""
    samples = _samples(voice, request.body.decode(), speed=float(request.header["speed"]))
    if not samples.size:
        raise SpeakerUnavailable(_NO_WORDS)
    spoken = encode(samples, rate=int(voice.config.sample_rate))
    header = {"kind": "spoken", "seconds": spoken.seconds, "waveform": spoken.waveform.hex()}
    return header, spoken.data


def _samples(voice: Any, text: str, speed: float = 1.0) -> NDArray[np.int16]:
    """Mono, at the voice's sample rate, shape [n]; n is 0 where nothing can be spoken."""
    pause = np.zeros(int(voice.config.sample_rate * _PAUSE_S), dtype=np.int16)
    said: list[NDArray[np.int16]] = []
    # Piper would take double brackets for phonemes.
    for part in parts_of(_PHONEMES.sub(" ", text)):
        for chunk in voice.synthesize(part, _paced(voice, speed)):
            said += [pause, chunk.audio_int16_array] if said else [chunk.audio_int16_array]
    return np.concatenate(said) if said else np.zeros(0, dtype=np.int16)


def _paced(voice: Any, speed: float) -> Any:
    """Piper's settings for a speed, a factor; None for those of the voice."""
    if speed == 1.0:
        return None
    from piper import SynthesisConfig  # noqa: PLC0415 - optional, as in `main`

    return SynthesisConfig(length_scale=voice.config.length_scale / speed)


def _packed(clauses: Sequence[str]) -> Iterator[str]:
    """Clauses joined up to the size limit."""
    held = ""
    for clause in clauses:
        for part in _short(clause):
            if held and len(held) + 1 + len(part) > PART_CHARACTERS:
                yield held
                held = ""
            held = f"{held} {part}" if held else part
    if held:
        yield held


def _short(clause: str) -> Iterator[str]:
    rest = clause.strip()
    while len(rest) > PART_CHARACTERS:
        cut = rest.rfind(" ", 1, PART_CHARACTERS + 1)
        cut = cut if cut > 0 else PART_CHARACTERS
        yield rest[:cut]
        rest = rest[cut:].strip()
    if rest:
        yield rest


def _limit() -> None:
    """Limit the address space, and lower the scheduling priority below transcription."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = _ADDRESS_SPACE_BYTES if hard == resource.RLIM_INFINITY else min(_ADDRESS_SPACE_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    os.nice(_NICENESS)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="voice.synthesis.piper_main", description=__doc__)
    parser.add_argument("--parent-pid", type=int, required=True)
    parser.add_argument("--voices-dir", type=Path, required=True)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
