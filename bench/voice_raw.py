"""faster-whisper with its defaults, in a separate process: the comparison for our transcriber.

Its defaults: its choice of threads, beam 5, language detection, the temperature fallback; and int8, as
ours. A request is four bytes of length (big endian) and the file's bytes; an answer is one line of JSON.
Time and processor time are measured inside, around the recogniser's call, so that the pipe is not counted.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import struct
import sys
import time
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.report import ROOT
from gateway.config import environment

_LENGTH = struct.Struct(">I")
_REPLY_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTranscript:
    """One recording, transcribed."""

    text: str
    wall_s: float
    cpu_s: float


class Raw:
    """The process. Raises RuntimeError when it dies."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """For measuring its memory."""
        return self._process.pid

    async def transcribe(self, data: bytes) -> RawTranscript:
        """The transcript of an audio file, with its cost."""
        assert self._process.stdin is not None
        self._process.stdin.write(_LENGTH.pack(len(data)) + data)
        reply = await self.reply()
        return RawTranscript(text=reply["text"], wall_s=reply["wall_s"], cpu_s=reply["cpu_s"])

    async def reply(self) -> dict[str, Any]:
        """The next line that it writes."""
        assert self._process.stdout is not None
        async with asyncio.timeout(_REPLY_S):
            line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("the bench's bare recogniser died; its last output is above")
        reply: dict[str, Any] = json.loads(line)
        return reply


@asynccontextmanager
async def raw_recogniser(model_dir: Path) -> AsyncIterator[Raw]:
    """A fresh process with its model loaded."""
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "bench.voice_raw", str(model_dir)),
        stdin=PIPE,
        stdout=PIPE,
        cwd=ROOT,
        env=dict(environment()),
        limit=2**20,
    )
    try:
        raw = Raw(process)
        await raw.reply()
        yield raw
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def serve(model_dir: str) -> None:
    """Answer requests until the input ends."""
    from faster_whisper import WhisperModel  # noqa: PLC0415 - the bench's own process never loads it

    model = WhisperModel(model_dir, device="cpu", compute_type="int8", local_files_only=True)
    _say({"pid": os.getpid()})
    while length := sys.stdin.buffer.read(_LENGTH.size):
        data = sys.stdin.buffer.read(_LENGTH.unpack(length)[0])
        wall, cpu = time.perf_counter(), time.process_time()
        segments, _ = model.transcribe(io.BytesIO(data))
        text = " ".join(segment.text.strip() for segment in segments)
        _say({"text": text, "wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu})


def _say(reply: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    serve(sys.argv[1])
