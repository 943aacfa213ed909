"""Search without a key, by the library ddgs in a child process, which is killed at the time limit.

Its connections pass `guarded_proxy`, so that they are checked like those of a fetched page.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence

from pipeline.domain.clock import Clock
from pipeline.tools.guarded_proxy import guarded_proxy
from pipeline.tools.search_backends import Hit, SearchFailed
from pipeline.tools.web_client import GuardedWeb

ENGINES = ("duckduckgo", "brave", "mojeek")
"""The library's names of the engines that get the query: the first two, then the third for more results."""
_MAIN = "pipeline.tools.search_keyless_main"
_REACHED = "https://html.duckduckgo.com/"
_DEADLINE_S = 20.0
_ENGINE_S = 6
_AT_ONCE = 2
_MOST_BYTES = 1_000_000
_NO_ANSWER = "The search engines cannot be reached, or refuse automatic searches now."


class Keyless:
    """Implements SearchBackend. `certificates` is a file of CA certificates that replaces the library's."""

    def __init__(
        self, web: GuardedWeb, clock: Clock, *, certificates: str = "", deadline_s: float = _DEADLINE_S
    ) -> None:
        self._web = web
        self._clock = clock
        self._certificates = certificates
        self._deadline_s = deadline_s
        self._slots = asyncio.Semaphore(_AT_ONCE)

    @property
    def label(self) -> str:
        return "DuckDuckGo, Brave and Mojeek"

    async def problem(self) -> str:
        """See `SearchBackend.problem`."""
        return await self._web.reach(_REACHED)

    async def search(self, query: str, count: int) -> Sequence[Hit]:
        """See `SearchBackend.search`."""
        try:
            async with self._clock.timeout(self._deadline_s), self._slots, guarded_proxy(self._web) as proxy:
                answer = await self._asked(query, count, proxy)
        except TimeoutError:
            raise SearchFailed(
                f"The search engines did not answer within {self._deadline_s:.0f} seconds."
            ) from None
        except OSError:
            raise SearchFailed("The search could not be started.") from None
        return _hits(answer)[:count]

    async def _asked(self, query: str, count: int, proxy: str) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", _MAIN),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            limit=_MOST_BYTES,
            # No variable of this process: they may hold secrets, or another proxy.
            env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
            start_new_session=True,
        )
        try:
            return await self._line(
                process,
                {
                    "query": query,
                    "count": count,
                    "engines": ",".join(ENGINES),
                    "proxy": proxy,
                    "certificates": self._certificates,
                    "engine_s": _ENGINE_S,
                    "ends_s": int(self._deadline_s) + 1,
                },
            )
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _line(self, process: Process, request: dict[str, object]) -> bytes:
        if process.stdin is None or process.stdout is None:
            return b""
        with contextlib.suppress(ConnectionError):
            process.stdin.write(json.dumps(request).encode() + b"\n")
            await process.stdin.drain()
        try:
            return await process.stdout.readline()
        except ValueError:
            raise SearchFailed("The search engines returned too much.") from None


def _hits(answer: bytes) -> list[Hit]:
    try:
        found = json.loads(answer)
        if found["error"]:
            raise SearchFailed(_NO_ANSWER)
        return [
            Hit(title=str(title), url=str(url), excerpt=str(words)) for title, url, words in found["hits"]
        ]
    except (ValueError, KeyError, TypeError):
        raise SearchFailed(_NO_ANSWER) from None
