"""Serve the page's files, read once at the start, from memory: a request cannot name a path on disk."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

from aiohttp import web

from adapters.web.security import security_headers
from pipeline.domain.frozen import dataclass

INDEX = "index.html"
_WORTH_PACKING = 0.9
_CONTENT_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml; charset=utf-8",
    ".webmanifest": "application/manifest+json; charset=utf-8",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """One file of the page."""

    content: bytes
    packed: bytes
    """The same compressed by gzip; empty where that is not much shorter."""
    content_type: str
    etag: str


class PageFiles:
    """All files under a directory with a known type; links and other files are skipped."""

    def __init__(self, directory: Path) -> None:
        self._files: dict[str, PageFile] = {}
        if not directory.is_dir():
            return
        for path in sorted(directory.rglob("*")):
            content_type = _CONTENT_TYPES.get(path.suffix)
            if content_type is None or path.is_symlink() or not path.is_file():
                continue
            content = path.read_bytes()
            digest = hashlib.sha256(content).hexdigest()[:32]
            self._files[path.relative_to(directory).as_posix()] = PageFile(
                content=content, packed=_packed(content), content_type=content_type, etag=f'"{digest}"'
            )

    def names(self) -> tuple[str, ...]:
        """The served names, relative to the directory."""
        return tuple(self._files)

    def response(self, name: str, request: web.Request) -> web.Response:
        """The file `name`, 304 when the browser already has it, 404 when it is not listed.

        Browsers cache the files and check each time whether the hash has changed, so a new
        version of the gateway never runs with an old page.
        """
        file = self._files.get(name)
        if file is None:
            return self._missing(name)
        headers = security_headers() | {"ETag": file.etag, "Cache-Control": "no-cache"}
        if file.packed:
            headers["Vary"] = "Accept-Encoding"
        presented = request.headers.get("If-None-Match", "")
        if file.etag in (tag.strip().removeprefix("W/") for tag in presented.split(",")):
            return web.Response(status=304, headers=headers)
        headers["Content-Type"] = file.content_type
        if file.packed and _takes_gzip(request):
            return web.Response(body=file.packed, headers=headers | {"Content-Encoding": "gzip"})
        return web.Response(body=file.content, headers=headers)

    def _missing(self, name: str) -> web.Response:
        if name == INDEX:
            return web.Response(
                status=503,
                text="The page's files are missing from this installation; install parlour again.\n",
                headers=security_headers(),
            )
        return web.Response(status=404, text="There is no such file.\n", headers=security_headers())


def _packed(content: bytes) -> bytes:
    packed = gzip.compress(content, mtime=0)
    return packed if len(packed) < _WORTH_PACKING * len(content) else b""


def _takes_gzip(request: web.Request) -> bool:
    accepted = request.headers.get("Accept-Encoding", "").lower().split(",")
    return any(one.strip() == "gzip" for one in accepted)
