"""Who may speak, and answers on a posting channel, through a whole gateway."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

from adapters.identity import derived_message_id
from gateway.access.policy import AccessRule
from gateway.cli.main import main
from pipeline.domain.command_types import CommandName
from pipeline.domain.messages import (
    ApprovalReply,
    Author,
    Inbound,
    InboundMessage,
    MediaRef,
    SessionCommand,
    button_handle,
)
from tests.support.gate_graph import PROMPT, Ledger, gate_graph
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.posting_channel import MemoryPosts
from voice.transcription.scripted_transcriber import ScriptedTranscriber

PAIRING = AccessRule.of(allow=("dm:ann", "room:r1/ann"))
ANN_CHAT = "memory:main:c1"


class CountingPosts(MemoryPosts):
    """Counts what is fetched from the platform."""

    def __init__(self) -> None:
        super().__init__()
        self.downloads = 0

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        self.downloads += 1
        return await super().download(ref, max_bytes=max_bytes)


def _message(posts: MemoryPosts, native_id: str, *, author: str, chat: str, private: bool) -> InboundMessage:
    return InboundMessage(
        message_id=derived_message_id(posts.name, posts.account, native_id),
        native_id=native_id,
        thread=posts.thread(chat),
        author=Author(id=author, name="Eve"),
        received_at=1_700_000_000.0,
        text="hello",
        private=private,
    )


def _everything(posts: MemoryPosts, author: str, chat: str, *, private: bool) -> list[Inbound]:
    """One item of every kind."""
    plain = _message(posts, f"{chat}-{author}", author=author, chat=chat, private=private)
    note = MediaRef(channel=posts.name, handle="note", mime="audio/ogg", kind="voice", size=10)
    changed = (
        plain,
        replace(plain, text="", voice=note),
        replace(plain, attachments=(replace(note, kind="file"),)),
        replace(plain, edited=True),
        replace(plain, forwarded=True),
        replace(plain, quoted="before"),
    )
    items: list[Inbound] = [
        replace(item, native_id=f"{item.native_id}-{number}") for number, item in enumerate(changed)
    ]
    names: tuple[CommandName, ...] = ("stop", "new", "help")
    items += [
        SessionCommand(
            message_id=f"m_{name}",
            native_id=name,
            thread=plain.thread,
            author=plain.author,
            received_at=0.0,
            name=name,
            private=private,
        )
        for name in names
    ]
    items.append(press_of(posts, "no such question", author=author, chat=chat, private=private))
    return items


def press_of(
    posts: MemoryPosts, question: str, *, author: str, chat: str, private: bool = True, option: int = 0
) -> ApprovalReply:
    """A person's press of a button of a question."""
    return ApprovalReply(
        message_id=f"m_press_{author}",
        native_id=f"press-{author}",
        thread=posts.thread(chat),
        author=Author(id=author),
        received_at=0.0,
        interaction_id=button_handle(question),
        choice="",
        option=option,
        private=private,
    )


async def _rows(harness: GatewayHarness) -> tuple[int, int, int, int]:
    counts = await harness.store.counts()
    return counts.inbox_open, counts.inbox_done, counts.outbox_open, counts.records


async def test_strangers_cost_no_download_no_transcription_no_model_call_and_no_row(tmp_path: Path) -> None:
    posts, transcriber = CountingPosts(), ScriptedTranscriber()
    posts.media["note"] = b"x" * 10
    async with open_gateway(tmp_path, posts=posts, rule=PAIRING, transcriber=transcriber) as harness:
        brought = 0
        for place, private in (("eve", True), ("r1", False), ("r2", False)):
            for author in ("eve", "mallory"):
                for item in _everything(posts, author, place, private=private):
                    assert (await posts.bring(item)).status == "refused"
                    brought += 1
        chatter = _message(posts, "x", author="ann", chat="r1", private=False)
        assert (await posts.bring(replace(chatter, addressed=False))).status == "refused"
        await posts.until(lambda: len({message.thread.chat for message in posts.messages}) == 3)
        assert brought == 60
        assert await _rows(harness) == (0, 0, 0, 0)
        assert (posts.downloads, harness.llm.requests) == (0, [])
        assert transcriber.calls == []
        # The same account admits the people on its list.
        accepted = await posts.receive("hi", native_id="n1", author="ann")
        assert accepted.status == "accepted"
        await posts.until(lambda: "You said: hi" in posts.texts("c1"))


async def test_a_stranger_is_let_in_by_the_code_while_the_gateway_runs(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, posts=posts, rule=PAIRING) as harness:
        await posts.receive("a secret question", native_id="n1", chat="eve", author="eve")
        await posts.until(lambda: "".join(posts.texts("eve")).count("`") == 2)
        shown = "".join(posts.texts("eve"))
        assert await _rows(harness) == (0, 0, 0, 0)
        code = shown.split("`")[1].removeprefix("parlour pair ")
        arguments = ["pair", code, "--yes", "--set", f'data.dir="{tmp_path}"']
        assert await asyncio.to_thread(main, arguments) == 0
        assert (await posts.receive("hi", native_id="n2", chat="eve", author="eve")).status == "accepted"
        await posts.until(lambda: "You said: hi" in posts.texts("eve"))
        assert [
            record.body["text"] for record in await harness.records("user", thread="memory:main:eve")
        ] == ["hi"]
        refused = await posts.receive("hi", native_id="n3", chat="r1", author="eve", private=False)
        assert refused.status == "refused"


async def _asked(harness: GatewayHarness, posts: MemoryPosts, native_id: str) -> str:
    """A message of Ann's whose run has asked; the question's id."""
    await posts.receive("pay", native_id=native_id, author="ann")
    await posts.until(lambda: any(message.buttons == ("approve", "deny") for message in posts.messages))
    return (await harness.store.pending_interactions(ANN_CHAT, now=0.0))[-1].id


async def test_a_button_continues_with_the_run_and_only_for_whom_it_was_shown(tmp_path: Path) -> None:
    posts, ledger = MemoryPosts(), Ledger(tmp_path / "ledger")
    async with open_gateway(tmp_path, posts=posts, rule=PAIRING, graph=gate_graph(ledger)) as harness:
        question = await _asked(harness, posts, "n1")
        stranger = await posts.bring(press_of(posts, question, author="eve", chat="c1"))
        elsewhere = await posts.bring(press_of(posts, question, author="ann", chat="r1", private=False))
        assert stranger.reason == "You are not allowed to use this bot."
        assert elsewhere.reason == "This question is no longer open."
        assert ledger.lines() == ["prepare", "ask"]
        assert (await posts.bring(press_of(posts, question, author="ann", chat="c1"))).status == "accepted"
        await posts.until(lambda: "approve by ann" in "".join(posts.texts()))
        assert ledger.lines() == ["prepare", "ask", "act approve"]


async def test_typed_words_answer_where_no_button_was_pressed_and_a_redelivery_is_no_turn(
    tmp_path: Path,
) -> None:
    posts, ledger = MemoryPosts(), Ledger(tmp_path / "ledger")
    async with open_gateway(tmp_path, posts=posts, rule=PAIRING, graph=gate_graph(ledger)) as harness:
        await _asked(harness, posts, "n1")
        assert (await posts.receive(" Deny ", native_id="n2", author="ann")).status == "accepted"
        await posts.until(lambda: "deny by ann" in "".join(posts.texts()))
        assert (await posts.receive(" Deny ", native_id="n2", author="ann")).status == "duplicate"
        counts = await harness.store.counts()
        assert (counts.inbox_open, counts.inbox_done) == (0, 2)
    assert ledger.lines() == ["prepare", "ask", "act deny"]
    assert any(PROMPT in message.text for message in posts.messages)


async def test_what_a_message_quotes_or_passes_on_is_recorded_and_read_by_the_model(tmp_path: Path) -> None:
    posts = MemoryPosts()
    transcriber = ScriptedTranscriber.always("and you?")
    note = MediaRef(channel=posts.name, handle="note", mime="audio/ogg", kind="voice", size=10)
    posts.media["note"] = b"x" * 10
    async with open_gateway(tmp_path, posts=posts, rule=PAIRING, transcriber=transcriber) as harness:
        plain = _message(posts, "q", author="ann", chat="c1", private=True)
        for number, item in enumerate(
            (
                replace(plain, quoted="The shop\nis closed."),
                replace(plain, forwarded=True),
                replace(plain, text="", voice=note, quoted="Hi."),
            )
        ):
            message_id = f"m_{number}"
            await posts.bring(replace(item, message_id=message_id, native_id=str(number)))
            await posts.until(partial(_answered, posts, number))
        said = [record.body["text"] for record in await harness.records("user", thread=ANN_CHAT)]
        assert said == [
            "> The shop\n> is closed.\n\nhello",
            "[Forwarded, in somebody else's words:]\nhello",
            "> Hi.\n\nand you?",
        ]
        assert [request.messages[-1].content for request in harness.llm.requests] == said


def _answered(posts: MemoryPosts, number: int) -> bool:
    """Whether more than `number` answers are finished."""
    return sum("You said" in text for text in posts.texts()) > number
