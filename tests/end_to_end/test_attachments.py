"""Attachments that cannot be used, through a whole gateway: the person reads which and why, the model what
was there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pipeline.domain.messages import Author, InboundMessage, MediaRef
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.file_reader import FakeFileReader
from tests.support.harness import open_gateway
from tests.support.posting_channel import MemoryPosts

CONTRACT = MediaRef(channel="memory", handle="f1", mime="application/pdf", size=120_000, name="contract.pdf")
NOTE = '[Attached: file "contract.pdf" (application/pdf, 120 KB). The content is not available to you.]'
LINE = "I left out `contract.pdf` (120 KB). The voice note is gone. Please send it again."


def _message(posts: MemoryPosts, number: int, text: str) -> InboundMessage:
    return InboundMessage(
        message_id=f"m_{number}",
        native_id=str(number),
        thread=posts.thread(),
        author=Author(id="ann"),
        received_at=0.0,
        text=text,
        attachments=(CONTRACT,),
    )


def _read(posts: MemoryPosts) -> str:
    return "".join(posts.texts())


async def test_a_caption_is_answered_below_the_line_that_the_file_was_left_out(tmp_path: Path) -> None:
    posts, llm = (
        MemoryPosts(),
        ScriptedLlm([ScriptedAnswer(chunks=("It is long.",)), ScriptedAnswer(chunks=("Yours.",))]),
    )
    async with open_gateway(tmp_path, posts=posts, llm=llm, file_reader=FakeFileReader()):
        await posts.bring(_message(posts, 1, "Please summarise this."))
        await posts.until(lambda: _read(posts) == f"{LINE}\n\nIt is long.")
        await posts.receive("Whose file was it?", native_id="2")
        await posts.until(lambda: posts.texts()[-1] == "Yours.")
    assert llm.requests[0].messages[-1].content == f"Please summarise this.\n\n{NOTE}"
    history = [message.content for message in llm.requests[1].messages if message.role != "system"]
    assert history == [f"Please summarise this.\n\n{NOTE}", f"{LINE}\n\nIt is long.", "Whose file was it?"]


async def test_a_file_without_a_word_costs_no_model_call_and_is_known_later(tmp_path: Path) -> None:
    posts, llm = MemoryPosts(), ScriptedLlm([ScriptedAnswer(chunks=("I did.",))])
    async with open_gateway(tmp_path, posts=posts, llm=llm, file_reader=FakeFileReader()):
        await posts.bring(_message(posts, 1, ""))
        await posts.until(lambda: _read(posts) == LINE)
        await posts.receive("Did you get it?", native_id="2")
        await posts.until(lambda: posts.texts()[-1] == "I did.")
    (request,) = llm.requests
    history = [message.content for message in request.messages if message.role != "system"]
    assert history == [NOTE, LINE, "Did you get it?"]


async def test_a_story_without_words_or_file_gets_the_line_too(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, posts=posts, file_reader=FakeFileReader()):
        await posts.bring(replace(_message(posts, 1, ""), attachments=(), unusable=("a story",)))
        await posts.until(lambda: _read(posts).endswith("."))
        assert _read(posts) == "I left out a story. I cannot open that kind of content."
