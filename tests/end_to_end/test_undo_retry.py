"""/undo and /retry in a whole gateway: what the model sees afterwards, what the log keeps, and restarts."""

from __future__ import annotations

import asyncio
import itertools
from functools import partial
from pathlib import Path

import pytest

from pipeline.domain.chat import ToolCall
from pipeline.domain.command_types import CommandName
from pipeline.domain.events import ErrorEvent
from pipeline.domain.messages import Author, InboundMessage, SessionCommand
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.posting_channel import MemoryPosts

UNDONE = "I no longer use your last message and its answer."


_NUMBERS = itertools.count()


async def ask(harness: GatewayHarness, text: str) -> str:
    accepted = await harness.channel.say(text, native_id=f"n{next(_NUMBERS)}")
    return (await harness.channel.reply(accepted.message_id)).text


def seen(llm: ScriptedLlm) -> list[list[str]]:
    """What the model saw of the conversation, by request."""
    return [[message.content for message in request.messages[1:]] for request in llm.requests]


def _command(
    posts: MemoryPosts, name: CommandName, native_id: str, *, author: str = "ann", private: bool = True
) -> SessionCommand:
    return SessionCommand(
        message_id=f"m_{native_id}",
        native_id=native_id,
        thread=posts.thread(),
        author=Author(id=author),
        received_at=0.0,
        name=name,
        private=private,
    )


def _calls(name: str, arguments: str) -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id=name, name=name, arguments=arguments))


_SAVES = (
    _calls("load_tools", '{"groups": ["notes"]}'),
    _calls("write_note", '{"title": "tea", "text": "green"}'),
    ScriptedAnswer.of("Saved."),
)


def _has_said(posts: MemoryPosts, text: str) -> bool:
    return text in posts.texts()


async def test_undo_takes_one_turn_after_another_out_also_over_a_restart(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        for text in ("one", "two", "three"):
            await ask(harness, text)
        assert (await ask(harness, "/undo")).startswith(UNDONE)
        await ask(harness, "four")
        assert seen(harness.llm)[-1] == ["one", "You said: one", "two", "You said: two", "four"]
        assert (await ask(harness, "/undo")).startswith(UNDONE)
    async with open_gateway(tmp_path) as harness:
        assert (await ask(harness, "/undo")).startswith(UNDONE)
        await ask(harness, "five")
        assert seen(harness.llm) == [["one", "You said: one", "five"]]
        said = [record.body["text"] for record in await harness.records("user")]
        assert said == ["one", "two", "three", "four", "five"]


async def test_undo_without_an_turn_says_so_and_changes_nothing(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        assert "no message" in await ask(harness, "/undo")
        await ask(harness, "one")
        await ask(harness, "/new")
        assert "no message" in await ask(harness, "/undo")


async def test_a_redelivered_undo_takes_out_one_turn(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, posts=posts) as harness:
        for text in ("one", "two"):
            await posts.receive(text, native_id=text)
        await posts.until(lambda: "You said: two" in posts.texts())
        for _ in range(3):
            # The platform delivers one command three times.
            await posts.bring(_command(posts, "undo", "u"))
        await posts.receive("three", native_id="three")
        await posts.until(lambda: "You said: three" in posts.texts())
        assert seen(harness.llm)[-1] == ["one", "You said: one", "three"]


async def test_retry_replaces_the_answer_and_the_log_keeps_both(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer.of(text) for text in ("hello", "tea", "coffee", "water", "bye")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        await ask(harness, "hi")
        await ask(harness, "what to drink?")
        assert await ask(harness, "/retry") == "coffee"
        assert await ask(harness, "/retry") == "water"
        await ask(harness, "thanks")
        before = ["hi", "hello", "what to drink?"]
        assert seen(llm)[2:] == [before, before, [*before, "water", "thanks"]]
        kept = [record.body["text"] for record in await harness.records("assistant")]
        assert kept == ["hello", "tea", "coffee", "water", "bye"]
    llm = ScriptedLlm.echo()
    async with open_gateway(tmp_path, llm=llm) as harness:
        await ask(harness, "/undo")
        await ask(harness, "/undo")
        await ask(harness, "again")
        assert seen(llm) == [["hi", "hello", "again"]]


async def test_a_retry_that_fails_leaves_the_answer_before(tmp_path: Path) -> None:
    stuck = ScriptedAnswer(chunks=("half ", "an answer"), gate=asyncio.Event(), gate_at=1)
    llm = ScriptedLlm([ScriptedAnswer.of("tea"), stuck, ScriptedAnswer.of("bye")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        await ask(harness, "what to drink?")
        retry = await harness.channel.say("/retry")
        await harness.channel.until(lambda: len(llm.requests) == 2)
        await harness.channel.say("/stop")
        assert isinstance(await harness.channel.terminal(retry.message_id), ErrorEvent)
        await ask(harness, "thanks")
        assert seen(llm)[-1] == ["what to drink?", "tea", "thanks"]
    llm = ScriptedLlm.echo()
    async with open_gateway(tmp_path, llm=llm) as harness:
        await ask(harness, "again")
        assert seen(llm)[-1][:2] == ["what to drink?", "tea"]


async def test_a_retry_that_a_restart_interrupts_is_answered_once(tmp_path: Path) -> None:
    stuck = ScriptedAnswer(chunks=("x",), gate=asyncio.Event(), gate_at=0)
    llm = ScriptedLlm([ScriptedAnswer.of("hello"), ScriptedAnswer.of("tea"), stuck])
    async with open_gateway(tmp_path, llm=llm, drain_s=0) as harness:
        await ask(harness, "hi")
        await ask(harness, "what to drink?")
        retry = await harness.channel.say("/retry")
        await harness.channel.until(lambda: len(llm.requests) == 3)
    llm = ScriptedLlm([ScriptedAnswer.of("coffee"), ScriptedAnswer.of("bye")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        assert (await harness.channel.reply(retry.message_id)).text == "coffee"
        await ask(harness, "thanks")
        assert seen(llm) == [
            ["hi", "hello", "what to drink?"],
            ["hi", "hello", "what to drink?", "coffee", "thanks"],
        ]


@pytest.mark.parametrize(("command", "words"), [("/retry", "no message"), ("/retry now", "Only `yes`")])
async def test_a_retry_of_nothing_or_with_other_words_does_not_reach_the_model(
    tmp_path: Path, command: str, words: str
) -> None:
    async with open_gateway(tmp_path) as harness:
        if command != "/retry":
            await ask(harness, "hi")
        assert words in await ask(harness, command)
        assert len(harness.llm.requests) == int(command != "/retry")


async def test_what_a_tool_did_stays_and_is_asked_about_before_it_is_done_again(tmp_path: Path) -> None:
    llm = ScriptedLlm([*_SAVES, ScriptedAnswer.of("Saved already.")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        await ask(harness, "note that I like green tea")
        asked = await ask(harness, "/retry")
        assert "`write_note`" in asked
        assert "`/retry yes`" in asked
        assert "load_tools" not in asked
        assert await ask(harness, "/retry YES") == "Saved already."
        await ask(harness, "/undo")
        assert "What that did" not in await ask(harness, "/undo")


async def test_undo_says_which_tools_had_changed_something(tmp_path: Path) -> None:
    reminds = (
        _calls("load_tools", '{"groups": ["schedule"]}'),
        _calls("remind_me", '{"text": "tea", "when": "in 10 minutes"}'),
        ScriptedAnswer.of("I remind you."),
    )
    async with open_gateway(tmp_path, llm=ScriptedLlm(list(reminds))) as harness:
        await ask(harness, "remind me of my tea")
        assert (await ask(harness, "/undo")).endswith(
            "The answer used `remind_me`. What that did stays done."
        )


async def test_off_the_record_both_commands_work_and_keep_nothing(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        await ask(harness, "/otr")
        await ask(harness, "one")
        await ask(harness, "secret")
        assert await ask(harness, "/retry") == "You said: secret"
        await ask(harness, "/undo")
        await ask(harness, "two")
        assert seen(harness.llm)[-1] == ["one", "You said: one", "two"]
    stored = (tmp_path / "parlour.sqlite3").read_bytes()
    assert b"said: secret" not in stored


async def test_an_edit_that_names_the_message_of_the_last_turn_replaces_it(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, posts=posts) as harness:
        for number, (place, text) in enumerate([("m0", "one"), ("m1", "tow"), ("m1", "two"), ("m0", "eins")]):
            await posts.bring(
                InboundMessage(
                    message_id=f"m{number}",
                    native_id=f"n{number}",
                    thread=posts.thread(),
                    author=Author(id="ann"),
                    received_at=0.0,
                    text=text,
                    edited=number > 1,
                    place=place,
                )
            )
            await posts.until(partial(_has_said, posts, f"You said: {text}"))
        two = ["one", "You said: one", "two", "You said: two"]
        assert seen(harness.llm)[2:] == [["one", "You said: one", "two"], [*two, "eins"]]
        kept = await harness.records("user", thread=posts.thread().encode())
        assert [record.body.get("replaces") for record in kept] == [None, None, "m1", None]


async def test_in_a_room_only_the_author_may_take_out_or_repeat_the_last_message(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, posts=posts) as harness:
        await posts.receive("one", native_id="1", author="ann", private=False)
        await posts.until(lambda: "You said: ann: one" in posts.texts())
        names: tuple[CommandName, ...] = ("undo", "retry")
        for name in names:
            await posts.bring(_command(posts, name, f"bob {name}", author="bob", private=False))
        await posts.until(lambda: sum("is another" in text for text in posts.texts()) == 2)
        await posts.bring(_command(posts, "retry", "ann", private=False))
        await posts.until(lambda: posts.texts().count("You said: ann: one") == 2)
        assert len(harness.llm.requests) == 2


async def test_a_retry_counts_as_a_message(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, "limits.messages_per_minute=2") as harness:
        await ask(harness, "one")
        await ask(harness, "/retry")
        refused = await harness.channel.say("/retry")
        assert refused.status == "refused"
        assert "slow down" in refused.reason
