"""A real photo and a real PDF, read by the gateway's own process, at the model's endpoint: byte by byte."""

from __future__ import annotations

import hashlib
from io import BytesIO
from pathlib import Path
from typing import Literal

import pytest
from PIL import Image

from gateway.app.reading import build_reader
from gateway.attachments.intake import MAX_PICTURE_BYTES, MAX_SIDE
from gateway.config import load
from pipeline.domain.clock import SystemClock
from pipeline.llm.scripted import ScriptedLlm
from tests.end_to_end.test_files_in import SEEING, client, naming, seen_in, text_in
from tests.gateway.reading.files import encoded, pdf, photo
from tests.support.harness import open_gateway
from tests.support.openai_server import FakeOpenAiServer
from tests.support.posted_files import message, ref
from tests.support.posting_channel import MemoryPosts


@pytest.mark.parametrize("kind", ["direct", "litellm"])
async def test_a_photo_and_a_pdf_reach_the_endpoint_scaled_and_as_text(
    tmp_path: Path, kind: Literal["direct", "litellm"]
) -> None:
    large = encoded(photo(4_000, 1_000), "JPEG", quality=95)
    reader = build_reader(load(None, {}, []), SystemClock())
    expected = await reader.picture(large, max_side=MAX_SIDE, max_bytes=MAX_PICTURE_BYTES)
    await reader.close()
    posts = MemoryPosts()
    posts.media = {"p1": large, "d1": pdf(["The secret is 7.", "More of it."])}
    refs = (ref("p1", "image", "wide.jpg", "image/jpeg"), ref("d1", "file", "report.pdf", "application/pdf"))
    async with (
        FakeOpenAiServer(brain=naming) as server,
        open_gateway(tmp_path, *SEEING, posts=posts, model=client(kind, server)),
    ):
        await posts.bring(message(posts, 1, "What is this?", *refs))
        wanted = hashlib.sha256(expected.content).hexdigest()[:8]
        await posts.until(lambda: "".join(posts.texts()) == f"I see {wanted}; 'secret' 1.")
    (request,) = server.requests
    (shown,) = seen_in(request.body)
    assert shown == expected.content
    assert Image.open(BytesIO(shown)).size == (1_568, 392)
    text = text_in(request.body["messages"][-1])
    assert '[Attached: picture "wide.jpg"; 4000 by 1000]\n[Attached: file "report.pdf"; 2 pages]\n' in text
    assert "(page 1)\nThe secret is 7.\n\n(page 2)\nMore of it.\n[/FILE]" in text


async def test_a_file_that_is_neither_picture_nor_document_is_left_out_in_words(tmp_path: Path) -> None:
    posts, llm = MemoryPosts(), ScriptedLlm.echo()
    posts.media = {"z": b"\x7fELF" + bytes(200)}
    async with open_gateway(tmp_path, posts=posts, llm=llm):
        await posts.bring(message(posts, 1, "", ref("z", "file", "tool.bin")))
        await posts.until(lambda: "I left out `tool.bin`. I cannot read this kind" in "".join(posts.texts()))
    assert llm.requests == []
