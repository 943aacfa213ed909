"""Serve the page's files, read once at the start, from memory: a request cannot name a path on disk.

The page names its files with the hash of all of them, `/static/HASH/app.js`: a browser never runs modules of
two versions together, and keeps them for ever. It checks index.html and the service worker each time.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from aiohttp import web

from adapters.web.language_choice import language_of
from adapters.web.page_bundle import bundled
from adapters.web.page_render import render_editor_texts, render_index, render_manifest, render_worker
from adapters.web.security import security_headers
from adapters.web.text_tables import SOURCE, TextTable
from pipeline.domain.frozen import dataclass

INDEX = "index.html"
MANIFEST = "manifest.webmanifest"
WORKER = "sw.js"
_NOT_IN_SHELL = (INDEX, MANIFEST, WORKER, "icon-180.png", "icon-192.png", "icon-512.png", "icon-maskable.png")
"""What the service worker does not store: the page without network needs none of them."""
_EDITOR = "editor"
_VERSION_CHARS = 10
_CHECKED = "no-cache"
_FOR_EVER = "public, max-age=31536000, immutable"
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
    content_type: str
    etag: str


class PageFiles:
    """All files under a directory with a known type; links and other files are skipped, and the modules are
    bundled. The page and its manifest are there once per table."""

    def __init__(self, directory: Path, tables: Sequence[TextTable]) -> None:
        self._tables = {table.tag: table for table in tables}
        self._files: dict[str, PageFile] = {}
        self._pages: dict[str, PageFile] = {}
        contents = bundled(_contents(directory))
        self._version = _version(contents, tables)
        for name, content in contents.items():
            self._files[name] = _page_file(name, content)
        if INDEX in contents:
            template = contents[INDEX].decode("utf-8")
            for tag, table in self._tables.items():
                words = render_index(template, table, self._tables.values(), self._version)
                self._pages[tag] = _page_file(INDEX, words.encode("utf-8"))
        if MANIFEST in contents:
            for tag, table in self._tables.items():
                words = render_manifest(contents[MANIFEST].decode("utf-8"), table)
                self._files[f"manifest.{tag}.webmanifest"] = _page_file(MANIFEST, words.encode("utf-8"))
        for tag, table in self._tables.items():
            name = f"{_EDITOR}.{tag}.json"
            self._files[name] = _page_file(name, render_editor_texts(table).encode("utf-8"))
        if WORKER in contents:
            # Nothing can be edited without the gateway.
            parts = [name for name in contents if not name.startswith(_EDITOR)]
            shell = [name for name in parts if name not in _NOT_IN_SHELL]
            words = render_worker(contents[WORKER].decode("utf-8"), self._version, shell)
            self._files[WORKER] = _page_file(WORKER, words.encode("utf-8"))

    def page(self, request: web.Request) -> web.Response:
        """index.html in the language of the request; 503 where the installation has no page."""
        file = self._pages.get(language_of(request, self._tables) if self._tables else SOURCE)
        if file is None:
            return web.Response(
                status=503,
                text="The page's files are missing from this installation; install parlour again.\n",
                headers=security_headers(),
            )
        return _response(file, request, _CHECKED, vary=("Accept-Language", "Cookie"))

    def response(self, name: str, request: web.Request) -> web.Response:
        """The file `name`, 304 when the browser already has it, 404 when it is not listed.

        With the version before it, a name means that content for ever; another version's name is not listed.
        Without it the browser checks each time whether the hash has changed.
        """
        version, _, versioned = name.partition("/")
        kept = version == self._version and versioned not in (INDEX, WORKER)
        file = self._files.get(versioned if kept else name)
        if file is None:
            return web.Response(status=404, text="There is no such file.\n", headers=security_headers())
        return _response(file, request, _FOR_EVER if kept else _CHECKED)


def _contents(directory: Path) -> dict[str, bytes]:
    """The files by their names relative to the directory."""
    if not directory.is_dir():
        return {}
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.suffix in _CONTENT_TYPES and not path.is_symlink() and path.is_file()
    }


def _version(contents: Mapping[str, bytes], tables: Sequence[TextTable]) -> str:
    """A hash of all files and texts."""
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name} {len(content)} ".encode())
        digest.update(content)
    for table in tables:
        digest.update(repr((table.tag, table.name, table.texts)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:_VERSION_CHARS]


def _page_file(name: str, content: bytes) -> PageFile:
    digest = hashlib.sha256(content).hexdigest()[:32]
    content_type = _CONTENT_TYPES[Path(name).suffix]
    return PageFile(content=content, content_type=content_type, etag=f'"{digest}"')


def _response(
    file: PageFile, request: web.Request, caching: str, *, vary: tuple[str, ...] = ()
) -> web.Response:
    headers = security_headers() | {"ETag": file.etag, "Cache-Control": caching}
    packed = _packed(file.content)
    varying = (*(("Accept-Encoding",) if packed else ()), *vary)
    if varying:
        headers["Vary"] = ", ".join(varying)
    presented = request.headers.get("If-None-Match", "")
    if file.etag in (tag.strip().removeprefix("W/") for tag in presented.split(",")):
        return web.Response(status=304, headers=headers)
    headers["Content-Type"] = file.content_type
    if packed and _takes_gzip(request):
        return web.Response(body=packed, headers=headers | {"Content-Encoding": "gzip"})
    return web.Response(body=file.content, headers=headers)


@functools.cache
def _packed(content: bytes) -> bytes:
    """The same compressed by gzip; empty where that is not much shorter. It is made when a browser first asks
    for the file: to make it for all of them takes a fifth of the time of a start."""
    packed = gzip.compress(content, mtime=0)
    return packed if len(packed) < _WORTH_PACKING * len(content) else b""


def _takes_gzip(request: web.Request) -> bool:
    accepted = request.headers.get("Accept-Encoding", "").lower().split(",")
    return any(one.strip() == "gzip" for one in accepted)
