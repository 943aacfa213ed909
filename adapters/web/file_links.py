"""Files of the conversation for the page: their description in a frame, and the response to a link.

A link is the access: it names one file of one chat, is signed and expires. Only pictures, sounds and films
are shown in a browser, each as the type that its bytes have; everything else is a download.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol
from urllib.parse import quote

from aiohttp import web

from adapters.web.security import security_headers
from pipeline.domain.errors import StorageError
from pipeline.domain.file_types import OCTETS, file_type
from pipeline.domain.files import FileGone, StoredFile
from pipeline.domain.ids import ThreadKey

_SHOWN = ("image", "audio", "video")
_POLICY = "default-src 'none'; sandbox; frame-ancestors 'none'"
_CACHED_S = 3_600


class FileAccess(Protocol):
    """Makes links to files, and reads the files of links."""

    def path(self, thread: ThreadKey, file: StoredFile) -> str:
        """The path of a new link to a file of `thread`: `/f/<token>/<name>`."""
        ...

    async def read(self, token: str, name: str) -> bytes:
        """The content. Raises FileGone with a sentence for the person, and StorageError."""
        ...


class LinkedFiles:
    """The files of one page. Without `access` there are none."""

    def __init__(self, access: FileAccess | None = None) -> None:
        self._access = access

    def described(self, thread: ThreadKey, files: Sequence[StoredFile]) -> list[dict[str, Any]]:
        """The `files` of an entry's frame, each with a new link, except those that are not
        stored yet; empty without access."""
        access = self._access
        if access is None:
            return []
        return [
            {
                "id": file.id,
                "kind": file.kind,
                "mime": file.mime,
                "size": file.size,
                "name": file.name,
                "about": file.about,
                "caption": file.caption,
                "url": access.path(thread, file) if file.id else "",
            }
            for file in files
        ]

    async def serve(self, request: web.Request) -> web.Response:
        """The file of a link, or a sentence why it cannot be had."""
        name = request.match_info["name"]
        if self._access is None:
            return _refused(404, "There are no files here.")
        try:
            content = await self._access.read(request.match_info["token"], name)
        except FileGone as error:
            return _refused(404, str(error))
        except StorageError:
            return _refused(503, "The file cannot be read now; try again in a moment.")
        return _response(content, name, request)


def _response(content: bytes, name: str, request: web.Request) -> web.Response:
    found = file_type(content)
    shown = found.kind in _SHOWN
    named = f"filename*=UTF-8''{quote(name, safe='')}"
    headers = security_headers() | {
        "Content-Security-Policy": _POLICY,
        "Content-Type": found.mime if shown else OCTETS,
        "Content-Disposition": f"{'inline' if shown else 'attachment'}; {named}",
        "Cache-Control": f"private, max-age={_CACHED_S}",
        "Accept-Ranges": "bytes",
    }
    try:
        wanted = request.http_range
    except ValueError:
        wanted = slice(None)
    start, stop, _ = wanted.indices(len(content))
    if wanted == slice(None, None, 1) or wanted == slice(None) or start >= stop:
        return web.Response(body=content, headers=headers)
    headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(content)}"
    return web.Response(status=206, body=content[start:stop], headers=headers)


def _refused(status: int, words: str) -> web.Response:
    return web.Response(status=status, text=f"{words}\n", headers=security_headers())
