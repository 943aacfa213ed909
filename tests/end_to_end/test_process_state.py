"""What one process decides or remembers, and another changes: links, questions, stops, reminders, watches."""

from __future__ import annotations

from pathlib import Path

from gateway.interactions.approvals import ALLOW
from gateway.scheduling.reminders import REMINDER
from gateway.storage.jobs import NewJob
from pipeline.domain.chat import ToolCall
from pipeline.domain.events import ApprovalRequired
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author, button_handle
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.gate_graph import Ledger, gate_graph
from tests.support.heartbeats import OWN, done, own_file
from tests.support.heartbeats import document as heartbeat_document
from tests.support.posting_channel import MemoryPosts
from tests.support.processes import Process, Processes, processes

_THREAD = ThreadKey(channel="console", account="local", chat="c1")


async def test_without_signals_a_stop_is_found_in_the_store(tmp_path: Path) -> None:
    async with processes(tmp_path) as cluster:
        edge = await cluster.start("edge")
        worker = await cluster.start("work", llm=_slow(cluster, 60.0))
        taken = await edge.channel.say("hello")
        await edge.channel.until(lambda: bool(worker.llm.requests))
        cluster.hub.take_away()
        await edge.channel.say("/stop")
        reply = await edge.channel.reply(taken.message_id)
        assert "Stopped" in reply.text
        assert worker.llm.cancelled == 1


async def test_a_due_reminder_comes_once_whichever_process_hands_it_over(tmp_path: Path) -> None:
    async with processes(tmp_path) as cluster:
        edge = await cluster.start("edge")
        workers = [await cluster.start("work") for _ in range(3)]
        for number in range(4):
            thread = ThreadKey(channel="console", account="local", chat=f"c{number}").encode()
            body = {"text": "water it", "author": "owner", "private": True, "offset_s": 0}
            due = cluster.clock.now() + 5.0
            await cluster.store.jobs.add(
                NewJob(kind=REMINDER, key=f"r{number}", thread=thread, due=due, body=body)
            )
        await edge.channel.until(lambda: len(_reminded(edge)) >= 4)
        await cluster.clock.advance(120.0)
        assert sorted(_reminded(edge)) == [f"c{n}" for n in range(4)]
        assert not any(worker.channel.sent for worker in workers)


async def test_what_is_watched_is_checked_by_one_process_and_then_by_another(tmp_path: Path) -> None:
    place = own_file(tmp_path, "list.txt")
    place.write_text("milk\n")
    heartbeat_document(tmp_path, "- watch file own/list.txt -- say what is new\n")
    words = ["There is tea.", "There is salt."]
    async with processes(tmp_path, *OWN) as cluster:
        edge = await cluster.start("edge")
        first = await cluster.start("work", llm=ScriptedLlm([done(words[0])]))
        second = await cluster.start("work", llm=ScriptedLlm([done(words[0])]))
        await cluster.clock.advance(180.0)
        place.write_text("milk\ntea\n")
        await edge.channel.until(lambda: words[0] in _texts(edge))
        assert len(first.llm.requests) + len(second.llm.requests) == 1
        await first.die()
        third = await cluster.start("work", llm=ScriptedLlm([done(words[1])]))
        await second.die()
        await cluster.clock.advance(180.0)
        place.write_text("milk\ntea\nsalt\n")
        await edge.channel.until(lambda: words[1] in _texts(edge))
        await cluster.clock.advance(180.0)
        assert len(third.llm.requests) == 1
        assert [text for text in _texts(edge) if text in words] == words


async def test_an_answer_is_found_in_the_store_where_its_signal_is_lost(tmp_path: Path) -> None:
    load = ScriptedAnswer.calling(ToolCall(id="l", name="load_tools", arguments='{"groups": ["files"]}'))
    write = ToolCall(id="c", name="write_file", arguments='{"path": "a.txt", "text": "hello"}')
    answers = [load, ScriptedAnswer.calling(write), ScriptedAnswer.of("It is written.")]
    async with processes(tmp_path) as cluster:
        edge = await cluster.start("edge")
        await cluster.start("work", llm=ScriptedLlm(answers))
        taken = await edge.channel.say("write it")
        await edge.channel.until(
            lambda: any(isinstance(one, ApprovalRequired) for one in edge.channel.events)
        )
        cluster.hub.take_away()
        (question,) = await cluster.store.pending_interactions(_THREAD.encode(), now=0.0)
        press = ApprovalReply(
            message_id="m_press",
            native_id="press",
            thread=_THREAD,
            author=Author(id="owner"),
            received_at=cluster.clock.now(),
            interaction_id=button_handle(question.id),
            choice="",
            option=question.options.index(ALLOW),
        )
        await edge.channel.bring(press)
        reply = await edge.channel.reply(taken.message_id)
        assert reply.text == "It is written."


async def test_a_question_that_expires_is_closed_once_and_by_the_process_that_shows_it(
    tmp_path: Path,
) -> None:
    ledger = Ledger(tmp_path / "ledger")
    graph = gate_graph(ledger, expires_s=30, prompt="Pay?")
    async with processes(tmp_path) as cluster:
        posts, others = MemoryPosts(), [MemoryPosts() for _ in range(2)]
        await cluster.start("edge", posts=posts, graph=graph)
        for one in others:
            await cluster.start("work", posts=one, graph=graph)
        await posts.receive("pay", native_id="1")
        await posts.until(lambda: any(one.buttons for one in posts.messages))
        await posts.until(lambda: not any(one.buttons for one in posts.messages))
        await posts.until(lambda: any("not answered in time" in shown for shown in posts.texts()))
        await cluster.clock.advance(60.0)
        assert sum("I did not continue" in shown for shown in posts.texts()) == 1
        assert not any(one.messages for one in others)
    assert ledger.lines() == ["prepare", "ask"]


def _slow(cluster: Processes, delay_s: float) -> ScriptedLlm:
    return ScriptedLlm.echo(clock=cluster.clock, delay_s=delay_s)


def _texts(edge: Process) -> list[str]:
    return [one.text for one in edge.channel.sent]


def _reminded(edge: Process) -> list[str]:
    return [one.thread.chat for one in edge.channel.sent if "water it" in one.text]
