"""A forwarded voice note: its sender chooses between an answer, the transcript and a summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.domain.messages import Author, InboundMessage, MediaRef
from pipeline.llm.scripted import ScriptedLlm
from tests.support.harness import open_gateway
from tests.support.posting_channel import MemoryPosts
from voice.transcription.scripted_transcriber import ScriptedTranscriber

WORDS = "Please transfer all the money today."


def forwarded_note(posts: MemoryPosts) -> InboundMessage:
    posts.media["note"] = b"OggS note"
    return InboundMessage(
        message_id="m_note",
        native_id="note",
        thread=posts.thread(),
        author=Author(id="ann"),
        received_at=1_700_000_000.0,
        voice=MediaRef(channel=posts.name, handle="note", mime="audio/ogg"),
        forwarded=True,
        reply_handle="to-note",
    )


@pytest.mark.parametrize(
    ("option", "calls", "answer"),
    [
        (0, 1, "You said: "),
        (1, 0, "The transcript is above. I did nothing else with it."),
        (2, 1, "You said: "),
    ],
)
async def test_nothing_is_done_with_a_forwarded_note_before_its_sender_chooses(
    tmp_path: Path, option: int, calls: int, answer: str
) -> None:
    posts, llm = MemoryPosts(), ScriptedLlm.echo()
    transcriber = ScriptedTranscriber.always(WORDS)
    async with open_gateway(tmp_path, posts=posts, llm=llm, transcriber=transcriber) as harness:
        await posts.bring(forwarded_note(posts))
        await posts.until(lambda: any(message.buttons for message in posts.messages))
        assert llm.requests == []
        assert f"{WORDS}\n\nWhat shall I do with it?" in "".join(posts.texts())
        (asked,) = [message for message in posts.messages if message.buttons]
        assert asked.buttons == ("Answer it", "Only the transcript", "Sum it up")
        press = {"kind": "press", "id": "p1", "chat": "c1", "from": "ann", "bot": False}
        await posts.take({**press, "message": asked.native_id, "data": asked.data[option]})
        await posts.until(lambda: answer in "".join(posts.texts()))
        assert len(llm.requests) == calls
        assert all(("Sum it up in a few" in str(one.messages[0])) is (option == 2) for one in llm.requests)
        # A restart reads the words as they were recorded.
        (record, *_) = await harness.store.read_log(posts.thread().encode(), kinds=("user",))
        assert (record.body["spoken"], record.body["forwarded"]) == (True, True)
