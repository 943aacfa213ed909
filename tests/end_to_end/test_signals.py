"""A whole gateway whose parts exchange every signal as JSON text, as several processes would."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from adapters.identity import derived_message_id
from gateway.cluster.redis_transport import RedisTransport
from gateway.cluster.remote import RemoteBus
from gateway.runtime.tasks import Supervisor
from gateway.storage.ports import Interaction
from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import SystemClock
from pipeline.domain.events import ApprovalRequired, LlmToken
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author, BargeIn, InboundMessage, button_handle
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.carried_bus import CarriedBus
from tests.support.channel import types_of
from tests.support.harness import THREAD, GatewayHarness, open_gateway
from tests.support.noted_transport import NotedTransport
from tests.support.posting_channel import MemoryPosts
from tests.support.valkey import Valkey

_PLACE = ThreadKey.decode(THREAD)


def _half() -> ScriptedAnswer:
    """An answer that stops in the middle until it is ended."""
    return ScriptedAnswer(chunks=("half ", "an ", "answer"), gate=asyncio.Event(), gate_at=2)


async def _until_half(harness: GatewayHarness) -> None:
    await harness.channel.until(
        lambda: sum(isinstance(event, LlmToken) for event in harness.channel.events) == 2
    )


async def test_a_turn_is_shown_and_answered_on_both_kinds_of_channels(tmp_path: Path) -> None:
    bus, posts, gate = CarriedBus(at_once=True), MemoryPosts(), asyncio.Event()
    llm = ScriptedLlm(
        [
            ScriptedAnswer(chunks=("one ", "two"), gate=gate, gate_at=1),
            ScriptedAnswer.of("later"),
            ScriptedAnswer.of("there"),
        ]
    )
    async with open_gateway(tmp_path, bus=bus, posts=posts, llm=llm) as harness:
        first = await harness.channel.say("count")
        await harness.channel.until(lambda: llm.requests)
        waits = await harness.channel.say("and then")
        gate.set()
        assert (await harness.channel.reply(first.message_id)).text == "one two"
        assert (await harness.channel.reply(waits.message_id)).text == "later"
        await posts.receive("hello", native_id="p1")
        await posts.until(lambda: posts.texts() == ["there"])
        (message,) = posts.messages
        shown = types_of(harness.channel.events_of(first.message_id))
    assert (shown[0], shown[-1], shown.count("llm_token")) == ("turn_started", "response_complete", 2)
    assert message.reply_handle == "to-p1"
    assert bus.carried["OutboxReady"] == 3
    assert bus.carried["Wake"] == 1, "a message that begins at once needs no wake"


async def test_a_stop_ends_the_running_turn_and_those_before_it(tmp_path: Path) -> None:
    bus, llm = CarriedBus(at_once=True), ScriptedLlm([_half()])
    async with open_gateway(tmp_path, bus=bus, llm=llm) as harness:
        running = await harness.channel.say("tell me a lot")
        await _until_half(harness)
        waits = await harness.channel.say("and more")
        stop = await harness.channel.say("/stop")
        assert (await harness.channel.reply(running.message_id)).text == "Stopped."
        assert (await harness.channel.reply(waits.message_id)).text == "Stopped."
        assert (await harness.channel.reply(stop.message_id)).text == "Stopped 2 messages."
    assert llm.cancelled == 1
    assert bus.carried["StopBefore"] == 1


async def test_speaking_over_an_answer_ends_it_and_nothing_that_waits(tmp_path: Path) -> None:
    bus, llm = CarriedBus(at_once=True), ScriptedLlm([_half(), ScriptedAnswer.of("yes")])
    async with open_gateway(tmp_path, bus=bus, llm=llm) as harness:
        running = await harness.channel.say("tell me a lot")
        await _until_half(harness)
        waits = await harness.channel.say("are you there")
        await harness.channel.bring(
            BargeIn(
                message_id="m_barge_in",
                native_id="speech-stop:1",
                thread=_PLACE,
                author=Author(id="owner"),
                received_at=SystemClock().now(),
            )
        )
        assert (await harness.channel.reply(running.message_id)).text == "Stopped."
        assert (await harness.channel.reply(waits.message_id)).text == "yes"
    assert bus.carried["Interrupt"] == 1


async def test_an_edit_ends_the_answer_in_progress(tmp_path: Path) -> None:
    bus, posts = CarriedBus(at_once=True), MemoryPosts()
    llm = ScriptedLlm([_half(), ScriptedAnswer.of("a whole one")])
    message = InboundMessage(
        message_id=derived_message_id(posts.name, posts.account, "1"),
        native_id="1",
        thread=posts.thread(),
        author=Author(id="ann"),
        received_at=1_700_000_000.0,
        text="tell me",
        reply_handle="1",
    )
    edited = replace(
        message,
        message_id=derived_message_id(posts.name, posts.account, "1:1"),
        native_id="1:1",
        text="tell me all",
        edited=True,
        place="1",
    )
    async with open_gateway(tmp_path, bus=bus, posts=posts, llm=llm):
        await posts.bring(replace(message, place="1"))
        await posts.until(lambda: posts.texts() == ["half an "])
        await posts.bring(edited)
        await posts.until(lambda: posts.texts() == ["a whole one"])
    assert (llm.cancelled, bus.carried["Withdrawn"]) == (1, 1)


async def test_a_pressed_answer_continues_the_turn_that_waits_and_a_stop_closes_its_question(
    tmp_path: Path,
) -> None:
    bus = CarriedBus(at_once=True)
    load = ToolCall(id="l", name="load_tools", arguments='{"groups": ["files"]}')
    write = ToolCall(id="w", name="write_file", arguments='{"path": "a.txt", "text": "hello"}')
    asking = [ScriptedAnswer.calling(load), ScriptedAnswer.calling(write)]
    llm = ScriptedLlm([*asking, ScriptedAnswer.of("Done."), *asking])
    async with open_gateway(tmp_path, bus=bus, llm=llm) as harness:
        first = await harness.channel.say("write it")
        await harness.channel.bring(_press(await _question(harness, asked=1)))
        assert (await harness.channel.reply(first.message_id)).text == "Done."
        second = await harness.channel.say("again")
        question = await _question(harness, asked=2)
        await harness.channel.say("/stop")
        assert (await harness.channel.reply(second.message_id)).text == "Stopped."
        late = await harness.channel.bring(_press(question))
        assert late.status == "refused"
    # The stop answers the question of the turn that it ends.
    assert bus.carried["Answered"] == 2


async def _question(harness: GatewayHarness, *, asked: int) -> Interaction:
    """The open question, once `asked` of them were shown."""
    await harness.channel.until(
        lambda: sum(isinstance(one, ApprovalRequired) for one in harness.channel.events) == asked
    )
    (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
    return question


def _press(question: Interaction) -> ApprovalReply:
    """Press *Allow*."""
    return ApprovalReply(
        message_id=f"m_{question.id}",
        native_id=question.id,
        thread=_PLACE,
        author=Author(id="owner"),
        received_at=1_700_000_000.0,
        interaction_id=button_handle(question.id),
        choice="",
        option=0,
    )


async def test_a_gateway_answers_while_the_server_of_its_bus_is_away_and_says_so(tmp_path: Path) -> None:
    async with Valkey(tmp_path) as server:
        noted = NotedTransport(RedisTransport(server.url))
        bus = RemoteBus((noted,), SystemClock(), Supervisor().spawn)
        async with open_gateway(tmp_path, bus=bus, llm=ScriptedLlm.echo()) as harness:
            await bus.round_trip()
            assert harness.gateway.channel_lines() == ("console:local up",)
            await server.kill()
            await noted.again()
            (line, _) = harness.gateway.channel_lines()
            assert line.startswith("bus degraded: redis cannot be reached")
            assert harness.gateway.ready
            said = await harness.channel.say("still there?")
            assert "still there?" in (await harness.channel.reply(said.message_id)).text
            await server.start()
            await bus.round_trip()
            assert harness.gateway.channel_lines() == ("console:local up",)
