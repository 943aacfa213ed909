"""Voice activity detection with onnxruntime: speech probability per frame, and spans of speech.

Imports onnxruntime. The model is Silero v6, from the file in faster-whisper's package,
which is not loaded itself. Runs in child processes. Not here: splitting (`voice.audio.segmentation`).
"""

from __future__ import annotations

import importlib.util
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime  # type: ignore[import-untyped]  # it ships no types

from voice.errors import TranscriberUnavailable
from voice.transcript import SAMPLE_RATE

FRAME = 512
"""Samples per probability: 32 ms."""

_CONTEXT = 64
_STATE_SHAPE = (1, 1, 128)
_FULL_SCALE = 32768.0

_QUIET_RMS = 0.0005
"""As a fraction of full scale, -66 dB. Speech lowered by 30 dB, far below whispering, still exceeds it in
every half second; below it the model itself begins to miss words."""
_QUIET_FRAMES = 16
"""Half a second of quiet ends the speech."""
_REPLAYED_FRAMES = 64
"""The most quiet frames that the model still gets when sound follows, two seconds: its answers depend on the
audio before. Without them, words after a pause were found up to 0.35 s late."""

_SPEECH = 0.5
_NO_SPEECH = 0.35
_MIN_SPEECH = SAMPLE_RATE // 10
_MIN_PAUSE = SAMPLE_RATE
_PAD = SAMPLE_RATE * 3 // 10
"""Added to each end of a span. Less than half a pause, so that spans stay apart."""


class SileroModel:
    """The loaded model. Uses 10 MB; one serves any number of streams, one call at a time."""

    def __init__(self) -> None:
        options = onnxruntime.SessionOptions()
        options.inter_op_num_threads = 1
        options.intra_op_num_threads = 1
        options.enable_cpu_mem_arena = False
        options.log_severity_level = 4
        self._session = onnxruntime.InferenceSession(
            str(_model_file()), providers=["CPUExecutionProvider"], sess_options=options
        )

    def run(self, frames: npt.NDArray[np.float32], h: Any, c: Any) -> tuple[Any, Any, Any]:
        """Probabilities of consecutive frames, each with the 64 samples before it, and the new state."""
        probabilities, h, c = self._session.run(None, {"input": frames, "h": h, "c": c})
        return probabilities.reshape(-1), h, c


class VoiceDetector:
    """One stream of samples. The answers do not depend on how the stream is divided into blocks.

    Before the first sound, and after half a second of quiet, quiet frames have the probability 0 and the
    model runs only when sound follows: a silent recording costs nothing.
    """

    def __init__(self, model: SileroModel) -> None:
        self._model = model
        self._h = np.zeros(_STATE_SHAPE, dtype=np.float32)
        self._c = np.zeros(_STATE_SHAPE, dtype=np.float32)
        self._context = np.zeros(_CONTEXT, dtype=np.int16)
        self._rest = np.zeros(0, dtype=np.int16)
        self._quiet_run = _QUIET_FRAMES
        self._unseen: deque[npt.NDArray[np.float32]] = deque(maxlen=_REPLAYED_FRAMES)

    def feed(self, block: npt.NDArray[np.int16]) -> tuple[float, ...]:
        """One probability for each frame of 512 samples that `block` completes."""
        samples = np.concatenate([self._rest, block])
        whole = samples.size - samples.size % FRAME
        self._rest = samples[whole:]
        if not whole:
            return ()
        return self._judged(samples[:whole].reshape(-1, FRAME))

    def finish(self) -> tuple[float, ...]:
        """The probability of the incomplete last frame, padded with silence; empty if there is none."""
        if not self._rest.size:
            return ()
        return self.feed(np.zeros(FRAME - self._rest.size, dtype=np.int16))

    def _judged(self, frames: npt.NDArray[np.int16]) -> tuple[float, ...]:
        contexts = np.vstack([self._context, frames[:-1, -_CONTEXT:]])
        self._context = frames[-1, -_CONTEXT:].copy()
        inputs = np.concatenate([contexts, frames], axis=1).astype(np.float32) / np.float32(_FULL_SCALE)
        quiet = np.sqrt(np.mean(np.square(inputs[:, _CONTEXT:]), axis=1)) < _QUIET_RMS
        answers: list[float] = []
        pending: list[npt.NDArray[np.float32]] = []
        for frame, is_quiet in zip(inputs, quiet, strict=True):
            self._quiet_run = self._quiet_run + 1 if is_quiet else 0
            if self._quiet_run <= _QUIET_FRAMES:
                pending.append(frame)
                continue
            answers += self._run(pending)
            answers.append(0.0)
            pending = []
            self._unseen.append(frame)
        answers += self._run(pending)
        return tuple(answers)

    def _run(self, frames: list[npt.NDArray[np.float32]]) -> list[float]:
        """Run the model on frames, preceded by the skipped quiet frames."""
        if not frames:
            return []
        shown = np.stack([*self._unseen, *frames])
        self._unseen.clear()
        probabilities, self._h, self._c = self._model.run(shown, self._h, self._c)
        answers: list[float] = probabilities[-len(frames) :].tolist()
        return answers


def probabilities_of(model: SileroModel, pcm: bytes) -> tuple[float, ...]:
    """One probability per 512 samples of a whole recording: 16 kHz, mono, 16 bit."""
    detector = VoiceDetector(model)
    return detector.feed(np.frombuffer(pcm, dtype="<i2")) + detector.finish()


class SpeechTracker:
    """Finds the spans of speech, and reports each part as soon as it is certain. Pure.

    A span begins with a likely frame and ends before a second without one; spans shorter than
    a tenth of a second are ignored; 0.3 s on each side are added.
    """

    def __init__(self) -> None:
        self._frames = 0
        self._start: int | None = None
        self._pause: int | None = None
        self._reported = 0

    def push(self, probabilities: Sequence[float]) -> list[tuple[int, int]]:
        """The next parts of certain speech, `(start, end)` in samples, in order and disjoint.

        A part that starts where the one before ended continues the same span.
        """
        stretches = self._closed_by(probabilities)
        if self._start is not None:
            end = self._frames * FRAME if self._pause is None else self._pause
            if end - self._start > _MIN_SPEECH:
                stretches += self._up_to(min(end + _PAD, self._frames * FRAME))
        return stretches

    def finish(self, probabilities: Sequence[float], total: int) -> list[tuple[int, int]]:
        """The last parts of a stream of `total` samples; `probabilities` may extend beyond them."""
        stretches = self._closed_by(probabilities)
        if self._start is not None and total - self._start > _MIN_SPEECH:
            stretches += self._up_to(total)
        return stretches

    def _closed_by(self, probabilities: Sequence[float]) -> list[tuple[int, int]]:
        stretches: list[tuple[int, int]] = []
        for probability in probabilities:
            position = self._frames * FRAME
            self._frames += 1
            if probability >= _SPEECH:
                self._pause = None
                if self._start is None:
                    self._start = position
            elif probability < _NO_SPEECH and self._start is not None:
                if self._pause is None:
                    self._pause = position
                if position - self._pause >= _MIN_PAUSE:
                    if self._pause - self._start > _MIN_SPEECH:
                        stretches += self._up_to(self._pause + _PAD)
                    self._start = self._pause = None
        return stretches

    def _up_to(self, end: int) -> list[tuple[int, int]]:
        """The part of the present span that is not reported yet."""
        start = max(self._reported, (self._start or 0) - _PAD)
        if end <= start:
            return []
        self._reported = end
        return [(start, end)]


def _model_file() -> Path:
    """Silero's file in faster-whisper's folder. Raises TranscriberUnavailable."""
    spec = importlib.util.find_spec("faster_whisper")
    if spec is not None and spec.origin is not None:
        path = Path(spec.origin).parent / "assets" / "silero_vad_v6.onnx"
        if path.is_file():
            return path
    raise TranscriberUnavailable(
        detail="The voice detector is not installed: faster-whisper's file silero_vad_v6.onnx is missing. "
        "Install Parlour with its voice extra."
    )
