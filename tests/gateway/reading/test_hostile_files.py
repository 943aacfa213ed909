"""Hundreds of hostile and broken pictures and documents, through the real reader."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gateway.reading.limits import MAX_TEXT_CHARS, ReadingLimits
from gateway.reading.reader_client import SandboxedReader
from pipeline.domain.clock import SystemClock
from pipeline.domain.readings import DocumentText, FileUnreadable, Picture
from tests.gateway.reading.hostile import Call, corpus

MEGABYTE = 1024 * 1024
SIDE, BYTES = 500, 200_000

REASONS = {
    "png-20000-wide": "too_large",
    "png-2147483647-wide": "too_large",
    "gif-65535-wide": "too_large",
    "gif-with-a-large-frame": "too_large",
    "bmp-30000-by-30000": "too_large",
    "tiff-40000-wide": "too_large",
    "jpeg-65500-wide": "too_large",
    "docx-of-spaces": "too_large",
    "docx-of-many-paragraphs": "too_large",
    "docx-long-attribute": "too_large",
    "zip-of-many-members": "too_large",
    "docx-billion-laughs": "damaged",
    "docx-file-entity": "damaged",
    "docx-remote-entity": "damaged",
    "docx-deeply-nested": "damaged",
    "pdf-page-is-its-own-parent": "damaged",
    "pdf-xref-in-a-ring": "damaged",
    "rtf-of-groups": "damaged",
    "pdf-with-a-password": "encrypted",
    "zip-encrypted": "encrypted",
    "zip-in-zip": "unsupported",
    "zip-outside": "unsupported",
    "docx-remote-main-part": "unsupported",
    "old-word-as-document": "unsupported",
    "picture-and-archive-as-document": "unsupported",
    "elf-as-document": "unsupported",
    "svg-as-picture": "unsupported",
    "heic-as-picture": "unsupported",
    "empty-as-document": "empty",
    "empty-as-picture": "empty",
}
"""What is refused, and why; of the rest, the mutants differ from release to release of the libraries."""
TEXTS = {
    "docx-macros": "x",
    "docx-remote-template": "x",
    "html-remote": "x",
    "svg-as-document": "<svg xmlns='http://www.w3.org/2000/svg' width='99999' height='99999'/>",
    "rtf-remote": "x",
    "pdf-uri": "x",
    "pdf-script": "x",
    "pdf-launch": "x",
    "pdf-form": "x",
    "pdf-outside-stream": "",
    "picture-and-pdf-as-document": "x",
    "pdf-behind-text-as-document": "x",
}
"""What is read, and its text."""

Outcome = Picture | DocumentText | FileUnreadable


@dataclass(slots=True)
class Watched:
    """What became of the files."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    connections: int = 0

    async def feed(self, reader: SandboxedReader, files: Iterator[tuple[str, Call, bytes]]) -> None:
        for name, call, content in files:
            try:
                if call == "picture":
                    self.outcomes[name] = await reader.picture(content, max_side=SIDE, max_bytes=BYTES)
                else:
                    self.outcomes[name] = await reader.document(content, name="file.txt", mime="text/plain")
            except FileUnreadable as error:
                self.outcomes[name] = error

    async def on_connection(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        writer.close()


def resident_bytes(pid: int | str) -> int:
    """The memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4_096


@pytest.mark.skipif(sys.platform != "linux", reason="reads the kernel's account of the processes")
async def test_every_hostile_file_ends_in_a_result_or_in_words() -> None:
    watched, lines = Watched(), list[str]()
    server = await asyncio.start_server(watched.on_connection, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    files = tuple(corpus(address))
    assert len({(call, content) for _, call, content in files}) >= 300
    before = resident_bytes("self")
    reader = SandboxedReader(ReadingLimits(), SystemClock(), on_line=lines.append)
    try:
        queue = iter(files)
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(watched.feed(reader, queue))
        pids = reader.pids
        # The processes that took the first files took the last ones, too, and keep nothing of them.
        assert len(pids) == 2
        assert max(map(resident_bytes, pids)) < 150 * MEGABYTE
        assert resident_bytes("self") - before < 100 * MEGABYTE
        assert (await reader.document(b"Still here.", name="", mime="")).pages == ("Still here.",)
    finally:
        await reader.close()
        server.close()

    assert watched.connections == 0
    assert lines == []
    assert set(watched.outcomes) == {name for name, _, _ in files}
    counts = Counter(check(name, outcome) for name, outcome in watched.outcomes.items())
    assert counts["read"] > 100
    assert counts["damaged"] > 80
    for name, reason in REASONS.items():
        assert check(name, watched.outcomes[name]) == reason, name
    for name, text in TEXTS.items():
        outcome = watched.outcomes[name]
        assert isinstance(outcome, DocumentText), (name, outcome)
        assert outcome.pages == (text,), name


def check(name: str, outcome: Outcome) -> str:
    """The reason of a failure, or `read`. Whatever the file is, the bounds hold."""
    if isinstance(outcome, FileUnreadable):
        words = str(outcome)
        assert words.endswith("."), name
        assert "\n" not in words, name
        assert len(words) < 250, name
        assert "Traceback" not in words, name
        assert outcome.reason not in ("unavailable", "too_slow"), name
        return outcome.reason
    if isinstance(outcome, Picture):
        assert max(outcome.width, outcome.height) <= SIDE, name
        assert len(outcome.content) <= BYTES, name
    else:
        assert len(outcome.pages) <= ReadingLimits().max_pages, name
        assert sum(map(len, outcome.pages)) <= 1.1 * MAX_TEXT_CHARS, name
    return "read"


async def test_the_server_of_the_hostile_files_would_notice_a_request() -> None:
    watched = Watched()
    server = await asyncio.start_server(watched.on_connection, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    assert await reader.read() == b""
    writer.close()
    server.close()
    assert watched.connections == 1
