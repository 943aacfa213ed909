"""The recogniser process: speech segments in, words out, one job after the other, until stdin closes.

Started by `voice.workers.child` with `python -m`; never imported by the gateway. Untrusted files are decoded
elsewhere (`voice.audio.decoder_main`); this process gets only samples.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from voice.audio.vad import SileroModel, probabilities_of
from voice.errors import TranscriberUnavailable
from voice.transcription.device import Device, chosen_device
from voice.transcription.engine_io import EngineJob, EngineResult
from voice.transcription.omission_check import CheckedEngine, SpeechEngine
from voice.transcription.whisper_engine import WhisperEngine, load_model
from voice.workers.frames import WorkerFrame, error_to_wire
from voice.workers.sandbox import die_with_parent, take_over_pipes

_GIGABYTE = 1024**3
_ADDRESS_SPACE_BYTES = 2 * _GIGABYTE
"""The base model uses half of it."""
_MODEL_COPIES = 4
"""Copies of a larger model's file in memory: read, converted, stored, and working memory."""
_MAX_BODY_BYTES = 64 * 1024 * 1024

EngineT = TypeVar("EngineT")


class Warms(Protocol):
    """A loaded model that may be slow at its first run."""

    @property
    def first_run_is_slow(self) -> bool:
        """Whether `warm_up` saves the first note some time."""
        ...

    def warm_up(self) -> None:
        """Run the model once."""
        ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve jobs on stdin and stdout until the parent closes stdin or dies."""
    options = _parse(arguments)
    die_with_parent(options.parent_pid)
    requests, send = take_over_pipes(_MAX_BODY_BYTES)
    try:
        engine = _engine(options)
        checked = _checked(engine) if options.engine == "fast" else engine
    except TranscriberUnavailable as error:
        send(WorkerFrame(header={"kind": "unavailable", **error_to_wire(error)}))
        return 1
    send(WorkerFrame(header={"kind": "ready"}))
    while True:
        send(_answer(requests.get(), engine, checked))


def chosen_engine(
    device: Device,
    load: Callable[[Literal["cpu", "cuda"]], EngineT],
    *,
    found: Literal["cpu", "cuda"] | None = None,
) -> EngineT:
    """The result of `load` for the processor or the GPU that `device` selects here, or for `found`.
    Raises TranscriberUnavailable.

    With `auto`, a GPU that is found but cannot be used (a driver without CUDA's libraries) falls back to the
    processor.
    """
    where = found or chosen_device(device)
    if where == "cpu" or device == "cuda":
        return load(where)
    try:
        return load(where)
    except TranscriberUnavailable as error:
        sys.stderr.write(f"the GPU cannot be used, so the processor is: {error.for_operator}\n")
        return load("cpu")


def warm(engine: Warms) -> None:
    """Run the model once where the first note would wait for that."""
    if engine.first_run_is_slow:
        engine.warm_up()


def address_space_bytes(model_dir: Path) -> int:
    """The address space limit of a process with this model on the processor."""
    model = model_dir / "model.bin"
    size = model.stat().st_size if model.is_file() else 0
    return max(_ADDRESS_SPACE_BYTES, _GIGABYTE + _MODEL_COPIES * size)


def _engine(options: argparse.Namespace) -> WhisperEngine:
    def load(device: Literal["cpu", "cuda"]) -> WhisperEngine:
        if device == "cpu":  # CUDA reserves far more addresses than memory
            _limit_memory(address_space_bytes(options.model_dir))
        model = load_model(options.model_dir, device=device, compute_type=options.compute_type)
        return WhisperEngine(model, engine=options.engine)

    return chosen_engine(options.device, load)


def _checked(engine: WhisperEngine) -> CheckedEngine:
    """Raises TranscriberUnavailable."""
    model = SileroModel()
    return CheckedEngine(engine, lambda pcm: probabilities_of(model, pcm))


def _answer(request: WorkerFrame, engine: WhisperEngine, checked: SpeechEngine) -> WorkerFrame:
    """The one, final answer to a request; an unexpected error ends the process."""
    job = request.header["job"]
    if request.header["kind"] == "warm_up":
        warm(engine)
        return WorkerFrame(header={"kind": "warm", "job": job, "final": True})
    results = checked.transcribe(list(_jobs(request)))
    segments = [_to_wire(result) for result in results]
    return WorkerFrame(header={"kind": "heard", "job": job, "final": True, "pieces": segments})


def _jobs(request: WorkerFrame) -> Iterator[EngineJob]:
    offset = 0
    for segment in request.header["pieces"]:
        end = offset + segment["bytes"]
        yield EngineJob(
            pcm=request.body[offset:end],
            spans=tuple((float(start), float(end)) for start, end in segment["spans"]),
            language=segment["language"],
            likely_language=segment["likely"],
            prompt=segment["prompt"],
            beam_size=segment["beam"],
        )
        offset = end


def _to_wire(result: EngineResult) -> Mapping[str, Any]:
    return {
        "chunks": [asdict(chunk) for chunk in result.chunks],
        "language": result.language,
        "language_probability": result.language_probability,
    }


def _limit_memory(address_space: int) -> None:
    """Limit the address space: a process that grows fails alone, without harm to the machine."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = address_space if hard == resource.RLIM_INFINITY else min(address_space, hard)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="voice.transcription.recognizer_main", description=__doc__)
    parser.add_argument("--parent-pid", type=int, required=True)
    parser.add_argument("--model-dir", type=Path, required=True)
    parser.add_argument("--engine", choices=("fast", "plain"), default="fast")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--compute-type", default="auto")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
