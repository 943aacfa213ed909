"""/retry of a message that had files: they are part of the repeated turn, from the store."""

from __future__ import annotations

import itertools
from pathlib import Path

from pipeline.domain.command_types import CommandName
from pipeline.domain.messages import Author, InboundMessage, SessionCommand
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.file_reader import PICTURE, SCALED, FakeFileReader
from tests.support.harness import open_gateway
from tests.support.posted_files import message, ref
from tests.support.posting_channel import MemoryPosts

SEEING = ('llm.model="openai/gpt-4o-mini"',)
PHOTO = ref("p1", "image", "cat.png", "image/png", 20)
REPORT = ref("d1", "file", "report.pdf", "application/pdf", 40)
MEDIA = {"p1": PICTURE + b"a cat", "d1": b"the secret is 7"}

_NUMBERS = itertools.count()


def _posts() -> MemoryPosts:
    posts = MemoryPosts()
    posts.media = dict(MEDIA)
    return posts


def _llm(*answers: str) -> ScriptedLlm:
    return ScriptedLlm([ScriptedAnswer.of(answer) for answer in answers])


def _stored(data: Path) -> list[Path]:
    return [path for path in (data / "files").rglob("*") if path.is_file()]


async def _said(posts: MemoryPosts, item: InboundMessage | SessionCommand, answer: str) -> None:
    """Bring the item, and wait for the bot's text."""
    await posts.bring(item)
    await posts.until(lambda: answer in "".join(posts.texts()))


def _command(posts: MemoryPosts, name: CommandName, argument: str = "") -> SessionCommand:
    native_id = f"{name}{next(_NUMBERS)}"
    return SessionCommand(
        message_id=f"m_{native_id}",
        native_id=native_id,
        thread=posts.thread(),
        author=Author(id="ann"),
        received_at=0.0,
        name=name,
        argument=argument,
    )


async def test_a_retry_shows_the_picture_and_the_document_again_also_after_a_restart(tmp_path: Path) -> None:
    posts, llm, reader = _posts(), _llm("A dog.", "A cat."), FakeFileReader()
    async with open_gateway(tmp_path, *SEEING, posts=posts, llm=llm, file_reader=reader):
        await _said(posts, message(posts, 1, "What is this?", PHOTO, REPORT), "A dog.")
        await _said(posts, _command(posts, "retry"), "A cat.")
    first, again = (request.messages[-1] for request in llm.requests)
    assert again == first
    assert "the secret is 7" in again.content
    assert [list(request.pictures.values()) for request in llm.requests] == [[SCALED + b"a cat"]] * 2
    posts, llm = MemoryPosts(), _llm("A kitten.", "Seven.")
    async with open_gateway(tmp_path, *SEEING, posts=posts, llm=llm, file_reader=reader) as harness:
        await _said(posts, _command(posts, "retry"), "A kitten.")
        await _said(posts, message(posts, 2, "And the secret?"), "Seven.")
        records = await harness.records("user", thread=posts.thread().encode())
    assert llm.requests[0].messages[-1] == first
    assert [one.content for one in llm.requests[1].messages[1:]] == [
        first.content,
        "A kitten.",
        "And the secret?",
    ]
    assert [list(request.pictures.values()) for request in llm.requests] == [[SCALED + b"a cat"]] * 2
    assert [[one["name"] for one in record.body.get("files", ())] for record in records] == [
        ["cat.png", "report.pdf"],
        ["cat.png", "report.pdf"],
        ["cat.png", "report.pdf"],
        [],
    ]
    assert len(_stored(tmp_path)) == 2, "nothing is fetched or stored again"
    assert len(reader.asked) == 1


async def test_a_picture_without_words_is_answered_again(tmp_path: Path) -> None:
    posts, llm = _posts(), _llm("A dog.", "A cat.")
    async with open_gateway(tmp_path, *SEEING, posts=posts, llm=llm, file_reader=FakeFileReader()):
        await _said(posts, message(posts, 1, "", PHOTO), "A dog.")
        await _said(posts, _command(posts, "retry"), "A cat.")
    assert list(llm.requests[1].pictures.values()) == [SCALED + b"a cat"]


async def test_a_retry_on_a_chosen_model_that_cannot_see_says_so(tmp_path: Path) -> None:
    posts, choices = _posts(), 'llm.choices=["scripted:echo"]'
    async with open_gateway(
        tmp_path, *SEEING, choices, posts=posts, llm=_llm("A cat."), file_reader=FakeFileReader()
    ):
        await _said(posts, message(posts, 1, "What is this?", PHOTO), "A cat.")
        await _said(posts, _command(posts, "model", "scripted:echo"), "answers from now on")
        line = "I left out `cat.png`. This model cannot see pictures.\n\nYou said: What is this?"
        await _said(posts, _command(posts, "retry"), line)
        assert "".join(posts.texts()).count("A cat.") == 1


async def test_a_picture_that_is_no_longer_stored_is_named_and_the_rest_is_answered(tmp_path: Path) -> None:
    posts, llm = _posts(), _llm("A dog.", "The secret is 7.")
    async with open_gateway(tmp_path, *SEEING, posts=posts, llm=llm, file_reader=FakeFileReader()):
        await _said(posts, message(posts, 1, "What is this?", PHOTO, REPORT), "A dog.")
        for path in _stored(tmp_path):
            path.unlink()
        line = "I left out `cat.png`. I no longer have it. Please send it again."
        await _said(posts, _command(posts, "retry"), f"{line}\n\nThe secret is 7.")
    assert '[Attached: picture "cat.png" (image/jpeg, ' in llm.requests[1].messages[-1].content
    assert llm.requests[1].pictures == {}


async def test_a_picture_alone_that_is_no_longer_stored_is_not_answered_again(tmp_path: Path) -> None:
    posts, llm = _posts(), _llm("A cat.", "Yes.")
    async with open_gateway(tmp_path, *SEEING, posts=posts, llm=llm, file_reader=FakeFileReader()):
        await posts.bring(_command(posts, "otr"))
        await _said(posts, message(posts, 1, "", PHOTO), "A cat.")
        await _said(posts, _command(posts, "retry"), "I no longer have it.")
        await _said(posts, message(posts, 2, "A cat?"), "Yes.")
    assert [one.content for one in llm.requests[1].messages[-2:]] == ["A cat.", "A cat?"]


async def test_a_retry_of_a_photo_and_a_text_of_one_burst_has_both(tmp_path: Path) -> None:
    posts, llm = _posts(), _llm("A dog.", "A cat.")
    reader = FakeFileReader()
    async with open_gateway(tmp_path, *SEEING, "turn.bursts=merge", posts=posts, llm=llm, file_reader=reader):
        await posts.bring(message(posts, 1, "", PHOTO))
        await _said(posts, message(posts, 2, "What is this?"), "A dog.")
        await _said(posts, _command(posts, "retry"), "A cat.")
    again = llm.requests[-1]
    assert again.messages[-1] == llm.requests[-2].messages[-1]
    assert "What is this?" in again.messages[-1].content
    assert list(again.pictures.values()) == [SCALED + b"a cat"]
