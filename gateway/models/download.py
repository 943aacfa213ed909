"""Download a file from a web server, resuming where an earlier attempt stopped.

Not here: verifying the file and knowing the models (`fetch`).
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from gateway.models.errors import SourceFailed

if TYPE_CHECKING:
    import aiohttp

_CHUNK_BYTES = 1 << 20
_CONNECT_S = 5.0
"""An unreachable hub is given up after so long, because the next source follows."""
_READ_S = 60.0


async def download(url: str, part: Path, size: int, on_bytes: Callable[[int], None]) -> None:
    """Complete the file `part` to `size` bytes from `url`; `on_bytes` gets the total so far.

    The present bytes of `part` are kept if the server continues there. Raises SourceFailed; `part` then
    holds the bytes that arrived.
    """
    have = _size_of(part)
    if have > size:
        await asyncio.to_thread(part.unlink)
        have = 0
    if have == size:
        return
    # A third of a second of imports, which `parlour models list` does not need.
    http: Any = importlib.import_module("aiohttp")
    timeout = http.ClientTimeout(total=None, connect=_CONNECT_S, sock_connect=_CONNECT_S, sock_read=_READ_S)
    headers = {"Range": f"bytes={have}-"} if have else {}
    try:
        async with (
            http.ClientSession(timeout=timeout, trust_env=True) as session,
            session.get(url, headers=headers) as response,
        ):
            if response.status not in (200, 206):
                raise SourceFailed(f"{url} answers {response.status} {response.reason}")
            if response.status == 200 or not _continues_at(response, have):
                have = 0
            with await asyncio.to_thread(part.open, "r+b" if have else "wb") as file:
                await _write(response, file, have, size, on_bytes)
    except (http.ClientError, TimeoutError) as error:
        raise SourceFailed(f"{url} cannot be read: {_words(error)}") from error
    arrived = _size_of(part)
    if arrived != size:
        raise SourceFailed(f"{url} ended after {arrived} of {size} bytes")


async def _write(
    response: aiohttp.ClientResponse, file: BinaryIO, have: int, size: int, on_bytes: Callable[[int], None]
) -> None:
    file.seek(have)
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        have += len(chunk)
        if have > size:
            raise SourceFailed(f"{response.url.host} sends more than the {size} bytes of this file")
        await asyncio.to_thread(file.write, chunk)
        on_bytes(have)


def _continues_at(response: aiohttp.ClientResponse, have: int) -> bool:
    """Whether a 206 answer starts where the part file ends."""
    return response.headers.get("Content-Range", "").startswith(f"bytes {have}-")


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _words(error: BaseException) -> str:
    return str(error) or "it does not answer in time"
