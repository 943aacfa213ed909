"""Several processes on one store: who answers, and who takes over what a dead one leaves."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gateway.storage.codec import new_entry
from gateway.storage.ports import Lease
from gateway.turns.taken_wakes import TakenWakes
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, BargeIn, InboundMessage
from pipeline.llm.scripted import ScriptedLlm
from tests.support.channel import types_of
from tests.support.posting_channel import MemoryPosts
from tests.support.processes import Process, Processes, SharedMemory, processes


async def test_the_edge_takes_messages_and_a_worker_answers_them(tmp_path: Path) -> None:
    async with processes(tmp_path) as cluster:
        edge = await cluster.start("edge")
        worker = await cluster.start("work")
        taken = await edge.channel.say("hello")
        reply = await edge.channel.reply(taken.message_id)
        assert reply.text == "You said: hello"
        await edge.channel.terminal(taken.message_id)
        events = types_of(edge.channel.events_of(taken.message_id))
        assert (events[0], events[-1]) == ("turn_started", "response_complete")
        assert worker.llm.requests
        assert not edge.llm.requests
        assert not worker.channel.sent


async def test_several_workers_answer_each_message_once_and_in_order(tmp_path: Path) -> None:
    async with processes(tmp_path) as cluster:
        edge = await cluster.start("edge")
        workers = [await cluster.start("work") for _ in range(2)]
        said = [
            (chat, number, await edge.channel.say(f"{chat} {number}", chat=chat))
            for number in range(3)
            for chat in ("a", "b", "c", "d")
        ]
        for _, _, taken in said:
            await edge.channel.reply(taken.message_id)
        await cluster.clock.advance(5.0)
        for chat in ("a", "b", "c", "d"):
            sent = [one.text for one in edge.channel.sent if one.thread.chat == chat]
            assert sent == [f"You said: {chat} {number}" for number in range(3)]
        assert sum(len(worker.llm.requests) for worker in workers) == len(said)


async def test_a_message_costs_no_refused_lease_of_the_other_workers(tmp_path: Path) -> None:
    async with processes(tmp_path) as cluster:
        leases = cluster.store = CountedLeases()
        edge = await cluster.start("edge")
        workers = [await cluster.start("work") for _ in range(4)]
        while edge.bus.workers < 4:
            await cluster.clock.advance(0.1)
        for round_ in range(2):
            said = [await edge.channel.say(f"n{number}", chat=f"c{round_}{number}") for number in range(24)]
            for taken in said:
                await edge.channel.reply(taken.message_id)
        assert leases.refused == 0
        # Each of them answers some.
        assert all(worker.llm.requests for worker in workers)


async def test_a_worker_that_is_chosen_for_the_thread_of_another_has_that_one_look(tmp_path: Path) -> None:
    async with processes(tmp_path) as cluster:
        leases = cluster.store = CountedLeases()
        edge, first = await cluster.start("edge"), await cluster.start("work")
        await edge.channel.reply((await edge.channel.say("one")).message_id)
        second = await cluster.start("work")
        # No process is woken for this message but the second worker, while the first one keeps the thread.
        thread = ThreadKey(channel=edge.channel.name, account=edge.channel.account, chat="c1")
        message = InboundMessage(
            message_id="m-2",
            native_id="2",
            thread=thread,
            author=Author(id="owner"),
            received_at=0.0,
            text="two",
        )
        await cluster.store.accept(new_entry(message))
        taken = TakenWakes(second.gateway.worker, second.bus.wake_holder)
        assert taken.room > 0
        assert taken.take(thread.encode())
        assert (await edge.channel.reply("m-2")).text == "You said: two"
        # On a slow machine the first one may have given it up meanwhile.
        assert leases.refused or second.llm.requests
        assert len(first.llm.requests) + len(second.llm.requests) == 2


async def test_a_full_worker_leaves_an_idle_thread_to_one_that_has_room(tmp_path: Path) -> None:
    async with processes(tmp_path, "turn.max_running=1") as cluster:
        edge, first = await cluster.start("edge"), await cluster.start("work", llm=_slow(cluster, 1.0))
        for chat in ("a", "b"):
            await edge.channel.reply((await edge.channel.say("hi", chat=chat)).message_id)
        second = await cluster.start("work")
        await cluster.clock.advance(3.0)
        slow = await edge.channel.say("one two three four five six", chat="a")
        await edge.channel.until(lambda: "llm_token" in _types(edge, slow.message_id))
        quick = await edge.channel.say("hello", chat="b")
        await edge.channel.reply(slow.message_id)
        assert [one.message_id for one in edge.channel.sent][2:] == [quick.message_id, slow.message_id]
        assert (len(first.llm.requests), len(second.llm.requests)) == (3, 1)
        # It has the thread from now on.
        await edge.channel.reply((await edge.channel.say("more", chat="b")).message_id)
        assert len(second.llm.requests) == 2


async def test_a_chat_that_finds_all_workers_full_is_answered_while_the_others_stay_busy(
    tmp_path: Path,
) -> None:
    async with processes(tmp_path, "turn.max_running=1") as cluster:
        edge = await cluster.start("edge")
        for _ in range(2):
            await cluster.start("work", llm=_slow(cluster, 0.5))

        async def keep_busy(chat: str) -> None:
            while True:
                await edge.channel.reply((await edge.channel.say("more and more", chat=chat)).message_id)

        async with asyncio.TaskGroup() as group:
            busy = [group.create_task(keep_busy(f"b{number}")) for number in range(6)]
            await cluster.clock.advance(5.0)
            late = await edge.channel.say("and me", chat="late")
            assert (await edge.channel.reply(late.message_id)).text == "You said: and me"
            for task in busy:
                task.cancel()


async def test_a_worker_that_runs_a_suspect_message_alone_is_given_no_others(tmp_path: Path) -> None:
    async with processes(tmp_path, "turn.max_attempts=1") as cluster:
        edge, first = await cluster.start("edge"), await cluster.start("work", llm=_slow(cluster, 1.0))
        # Two at once, so that neither died alone, and both are suspect.
        suspects = [await edge.channel.say("one two three four five six", chat=chat) for chat in ("a", "b")]
        for taken in suspects:
            await edge.channel.until(lambda taken=taken: "llm_token" in _types(edge, taken.message_id))
        script = _slow(cluster, 1.0)
        second = await cluster.start("work", llm=script)
        await first.die()
        while not script.requests:
            await cluster.clock.advance(0.1)
        assert second.gateway.worker.room == 0
        third = await cluster.start("work")
        said = [await edge.channel.say(f"n{number}", chat=f"c{number}") for number in range(4)]
        for taken in said:
            await edge.channel.reply(taken.message_id)
        answered = {one.message_id for one in edge.channel.sent}
        assert not answered & {taken.message_id for taken in suspects}
        assert len(third.llm.requests) == len(said)


class CountedLeases(SharedMemory):
    """Counts the leases that another process had."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = 0

    async def acquire_lease(self, thread: str, owner: str, *, ttl_s: float, now: float) -> Lease | None:
        lease = await super().acquire_lease(thread, owner, ttl_s=ttl_s, now=now)
        # Not that of the work which one process does for all.
        self.refused += lease is None and ":" in thread
        return lease


async def test_a_process_that_does_everything_works_beside_another(tmp_path: Path) -> None:
    async with processes(tmp_path) as cluster:
        first = await cluster.start("all")
        second = await cluster.start("all")
        said = [await first.channel.say(f"n{number}", chat=f"c{number}") for number in range(6)]
        replies = [await first.channel.reply(taken.message_id) for taken in said]
        assert [reply.text for reply in replies] == [f"You said: n{number}" for number in range(6)]
        assert not second.channel.sent
        assert len(first.llm.requests) + len(second.llm.requests) == 6


async def test_a_dead_workers_turn_is_finished_by_another(tmp_path: Path) -> None:
    async with processes(tmp_path) as cluster:
        edge, first = await cluster.start("edge"), await cluster.start("work", llm=_slow(cluster, 5.0))
        taken = await edge.channel.say("hello")
        await edge.channel.until(lambda: "llm_token" in _types(edge, taken.message_id))
        await cluster.start("work")
        died_at = cluster.clock.monotonic()
        await first.die()
        reply = await edge.channel.reply(taken.message_id)
        assert reply.text == "You said: hello"
        # The time to live of its report, and the time after which each worker looks; and the answer.
        assert cluster.clock.monotonic() - died_at < 3.0 + 0.5 + 1.0
        await cluster.clock.advance(5.0)
        assert [one.message_id for one in edge.channel.sent] == [taken.message_id]


async def test_a_worker_that_stops_in_order_leaves_its_threads_at_once(tmp_path: Path) -> None:
    async with processes(tmp_path) as cluster:
        edge, first = await cluster.start("edge"), await cluster.start("work", llm=_slow(cluster, 5.0))
        taken = await edge.channel.say("hello")
        await edge.channel.until(lambda: "llm_token" in _types(edge, taken.message_id))
        await cluster.start("work")
        await first.stop()
        stopped_at = cluster.clock.monotonic()
        await edge.channel.reply(taken.message_id)
        assert cluster.clock.monotonic() - stopped_at < 3.0


async def test_a_standby_edge_takes_over_the_accounts_of_a_dead_one(tmp_path: Path) -> None:
    async with processes(tmp_path) as cluster:
        first = await cluster.start("edge")
        worker = await cluster.start("work", llm=_slow(cluster, 2.0))
        standby = await cluster.start("edge")
        assert [status.state for status in standby.gateway.channel_statuses()] == ["down"]
        taken = await first.channel.say("hello")
        await first.channel.until(lambda: "turn_started" in _types(first, taken.message_id))
        await first.die()
        reply = await standby.channel.reply(taken.message_id)
        assert reply.text == "You said: hello"
        assert not first.channel.sent
        again = await standby.channel.say("and now")
        await standby.channel.reply(again.message_id)
        assert len(worker.llm.requests) == 2


async def test_without_signals_everything_is_found_in_the_store(tmp_path: Path) -> None:
    async with processes(tmp_path) as cluster:
        edge = await cluster.start("edge")
        worker = await cluster.start("work")
        # A wake that is lost while the worker is not connected again: its thread is released, not waited for.
        worker.gateway.worker._linger_s = 1_000_000.0
        cluster.hub.take_away()
        taken = await edge.channel.say("hello")
        reply = await edge.channel.reply(taken.message_id)
        assert reply.text == "You said: hello"
        assert any("bus degraded" in line for line in edge.gateway.channel_lines())
        cluster.hub.bring_back()
        await edge.bus.round_trip()
        again = await edge.channel.say("again")
        await edge.channel.reply(again.message_id)
        assert not any("bus degraded" in line for line in edge.gateway.channel_lines())


async def test_a_stop_reaches_the_worker_that_runs_the_turn(tmp_path: Path) -> None:
    async with processes(tmp_path) as cluster:
        edge = await cluster.start("edge")
        workers = [await cluster.start("work", llm=_slow(cluster, 5.0)) for _ in range(2)]
        taken = await edge.channel.say("hello")
        await edge.channel.until(lambda: "llm_token" in _types(edge, taken.message_id))
        await edge.channel.say("/stop")
        ended = await edge.channel.terminal(taken.message_id)
        assert ended.type == "error"
        assert sum(worker.llm.cancelled for worker in workers) == 1


async def test_a_preview_continues_in_the_same_message_after_its_worker_died(tmp_path: Path) -> None:
    words = "one two three four five six"
    async with processes(tmp_path) as cluster:
        posts = MemoryPosts()
        edge = await cluster.start("edge", posts=posts)
        first = await cluster.start("work", llm=_slow(cluster, 1.0), posts=MemoryPosts())
        await posts.receive(words, native_id="1")
        await posts.until(lambda: any("two" in shown for shown in posts.texts()))
        await cluster.start("work", llm=_slow(cluster, 1.0), posts=MemoryPosts())
        await first.die()
        await posts.until(lambda: any(shown.endswith("six") for shown in posts.texts()))
        await cluster.clock.advance(5.0)
        (message,) = posts.messages
        answers = [shown for shown in message.versions if shown.startswith("You said")]
        assert [len(shown) for shown in answers] == sorted(len(shown) for shown in answers)
        assert edge.gateway.ready


async def test_a_job_of_another_process_gets_a_thread_that_only_lingers(tmp_path: Path) -> None:
    async with processes(tmp_path, "agent.titles=true") as cluster:
        edge = await cluster.start("edge")
        script = ScriptedLlm(clock=cluster.clock)
        await cluster.start("work", llm=script)
        taken = await edge.channel.say("hello")
        await edge.channel.reply(taken.message_id)
        thread = "console:local:c1"
        other = await cluster.start("work")
        ran: list[str] = []

        async def work(lease: Lease, _session: object) -> None:
            ran.append(lease.owner)

        assert await other.gateway.worker.when_idle(thread, work)
        assert len(ran) == 1
        again = await edge.channel.say("again")
        await edge.channel.reply(again.message_id)


async def test_speech_over_an_answer_stops_it_on_a_worker_also_where_the_signal_is_lost(
    tmp_path: Path,
) -> None:
    async with processes(tmp_path) as cluster:
        edge = await cluster.start("edge")
        worker = await cluster.start("work", llm=_slow(cluster, 20.0))
        taken = await edge.channel.say("one two three four five six seven")
        await edge.channel.until(lambda: "llm_token" in _types(edge, taken.message_id))
        cluster.hub.take_away()
        spoken_at = cluster.clock.monotonic()
        await edge.channel.bring(
            BargeIn(
                message_id="m_barge_in",
                native_id="speech-stop:1",
                thread=ThreadKey.decode("console:local:c1"),
                author=Author(id="owner"),
                received_at=cluster.clock.now(),
            )
        )
        assert (await edge.channel.reply(taken.message_id)).text == "Stopped."
        assert cluster.clock.monotonic() - spoken_at < 10.0
        assert worker.llm.cancelled == 1


async def test_a_voice_note_is_fetched_by_the_process_that_has_the_account(tmp_path: Path) -> None:
    async with processes(tmp_path) as cluster:
        edge = await cluster.start("edge")
        worker = await cluster.start("work")
        taken = await edge.channel.say("", voice=b"sound")
        assert (await edge.channel.reply(taken.message_id)).text == "You said: hello"
        assert worker.llm.requests
        assert await cluster.store.blobs.total_bytes() == 0


async def test_a_note_whose_request_was_lost_is_asked_for_again(tmp_path: Path) -> None:
    async with processes(tmp_path) as cluster:
        edge = await cluster.start("edge")
        await cluster.start("work")
        cluster.hub.take_away()
        taken = await edge.channel.say("", voice=b"sound")
        await cluster.clock.advance(5.0)
        cluster.hub.bring_back()
        assert (await edge.channel.reply(taken.message_id)).text == "You said: hello"


async def test_a_note_that_the_platform_no_longer_has_is_answered_in_words(tmp_path: Path) -> None:
    async with processes(tmp_path) as cluster:
        edge = await cluster.start("edge")
        await cluster.start("work")
        cluster.hub.take_away()
        gone = await edge.channel.say("", voice=b"sound", native_id="n1")
        edge.channel.media.clear()
        cluster.hub.bring_back()
        assert "is gone" in (await edge.channel.reply(gone.message_id)).text


async def test_one_process_removes_what_a_gateway_before_left_in_the_folder(tmp_path: Path) -> None:
    left = tmp_path / "media" / "v_00112233445566778899aabbccddeeff"
    left.parent.mkdir(mode=0o700)
    left.write_bytes(b"sound")
    async with processes(tmp_path, "channels.web.enabled=true") as cluster:
        for role in ("edge", "work", "work"):
            await cluster.start(role)
        async with asyncio.timeout(120):
            while left.exists():
                await cluster.clock.advance(0.05)
        assert not left.exists()


def _slow(cluster: Processes, delay_s: float) -> ScriptedLlm:
    return ScriptedLlm.echo(clock=cluster.clock, delay_s=delay_s)


def _types(process: Process, message_id: str) -> list[str]:
    return types_of(process.channel.events_of(message_id))
