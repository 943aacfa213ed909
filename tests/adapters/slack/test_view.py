"""Previews: streams in threads, edits elsewhere and wherever a stream is refused; the final is an edit."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.channel import LiveView, Outgoing
from adapters.slack.failures import CallFailed
from adapters.slack.fields import reply_handle
from pipeline.domain.clock import SystemClock
from pipeline.domain.ids import ThreadKey
from tests.adapters.slack.harness import Running, running, thread_of
from tests.support.platforms.platform import Fault, FaultKind, Place
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.slack_state import TEAM


@pytest.fixture
async def live() -> AsyncIterator[Running]:
    async with FakeSlack(echo_own=False) as slack, running(slack) as live:
        slack.lenient = True
        yield live


class Thread:
    """A thread in a channel that a person began."""

    def __init__(self, live: Running, place: Place, ts: str, user: str) -> None:
        self.live = live
        self.place = place
        self.key: ThreadKey = thread_of(place.chat, ts)
        self.handle = reply_handle(ts, user, TEAM)

    def view(self, native_id: str = "") -> LiveView:
        view = self.live.adapter.open_view(
            self.key, key="m_1:0", reply_handle=self.handle, native_id=native_id
        )
        assert view is not None
        return view

    def texts(self) -> list[str]:
        return self.live.slack.bot_texts(self.place)

    def methods(self) -> list[str]:
        return [call.method for call in self.live.slack.calls if call.method.startswith("chat.")]

    async def finish(self, view: LiveView, text: str) -> None:
        part = self.live.adapter.render(Outgoing(text=text))[0]
        await self.live.adapter.edit(self.key, view.native_id, part)


@pytest.fixture
async def thread(live: Running) -> Thread:
    ann = live.slack.person("ann")
    place = live.slack.room("general", ann)
    ts = (await live.slack.say(place, ann, "hello")).partition(":")[2]
    return Thread(live, place, ts, ann.id)


async def grow(view: LiveView, *texts: str) -> None:
    for text in texts:
        await view.show(Outgoing(text=text, unfinished=True))


async def test_in_a_thread_an_answer_streams_and_the_final_edits_it(thread: Thread) -> None:
    view = thread.view()
    await grow(view, "One", "One two", "One two", "One two **three**")
    assert thread.texts() == ["One two **three**"] or thread.texts() == ["One two three"]
    await view.close()
    await thread.finish(view, "One two **three**.")
    assert thread.texts() == ["One two three."]
    assert thread.methods() == [
        "chat.startStream",
        "chat.appendStream",
        "chat.appendStream",
        "chat.stopStream",
        "chat.update",
    ]


async def test_outside_of_a_thread_a_message_is_edited_and_has_a_stop_button(live: Running) -> None:
    place = live.slack.private_chat(live.slack.person("ann"))
    view = live.adapter.open_view(thread_of(place.chat), key="m_1:0", reply_handle="", native_id="")
    assert view is not None
    await grow(view, "One", "One two")
    [shown] = live.slack.visible(place)
    assert (shown.text, shown.buttons, shown.native_id) == ("One two", ("Stop",), view.native_id)
    await view.close()
    part = live.adapter.render(Outgoing(text="One two three"))[0]
    await live.adapter.edit(thread_of(place.chat), view.native_id, part)
    [shown] = live.slack.visible(place)
    assert (shown.text, shown.buttons) == ("One two three", ())


async def test_where_streams_are_unknown_they_are_tried_once(thread: Thread) -> None:
    thread.live.slack.web.streams = False
    for _ in range(2):
        view = thread.view()
        await grow(view, "One", "One two")
        await view.close()
    assert thread.texts() == ["One two", "One two"]
    assert thread.methods().count("chat.startStream") == 1


@pytest.mark.parametrize("kind", ["drop", "error_before", "error_after"])
async def test_a_stream_that_breaks_in_the_middle_continues_as_edits_and_loses_nothing(
    thread: Thread, kind: FaultKind
) -> None:
    view = thread.view()
    await grow(view, "One", "One two")
    thread.live.slack.faults.script.append(Fault(method="chat.appendStream", kind=kind))
    await grow(view, "One two three", "One two three four")
    assert thread.texts() == ["One two three four"]
    await view.close()
    await thread.finish(view, "One two three four five")
    assert thread.texts() == ["One two three four five"]


async def test_a_stream_that_slack_ended_continues_as_edits(thread: Thread) -> None:
    view = thread.view()
    await grow(view, "One")
    thread.live.slack.workspace.messages[-1].streaming = False
    await grow(view, "One two")
    assert thread.texts() == ["One two"]
    await view.close()


async def test_a_text_that_is_revised_is_edited(thread: Thread) -> None:
    view = thread.view()
    await grow(view, "One", "Uno", "Uno due")
    await view.close()
    assert thread.texts() == ["Uno due"]


async def test_a_limit_is_the_gateways_to_wait_for_and_nothing_is_lost(thread: Thread) -> None:
    view = thread.view()
    await grow(view, "One")
    thread.live.slack.faults.script.append(Fault(method="chat.appendStream", kind="rate_limit"))
    with pytest.raises(CallFailed) as raised:
        await grow(view, "One two")
    assert raised.value.failure.kind == "rate_limit"
    await grow(view, "One two three")
    assert thread.texts() == ["One two three"]
    await view.close()


@pytest.mark.parametrize("kind", ["error_after", "drop"])
async def test_a_preview_whose_answer_was_lost_is_found_and_not_repeated(
    thread: Thread, kind: FaultKind
) -> None:
    for method, streams in (("chat.startStream", True), ("chat.postMessage", False)):
        thread.live.slack.web.streams = streams
        before = len(thread.texts())
        thread.live.slack.faults.script.append(Fault(method=method, kind=kind))
        view = thread.view()
        with pytest.raises(CallFailed):
            await grow(view, f"Text by {method}")
        await view.close()
        assert view.native_id
        await thread.finish(view, "the answer")
        assert thread.texts()[before:] == ["the answer"]


async def test_a_preview_that_never_arrived_is_made_once(thread: Thread) -> None:
    thread.live.slack.faults.script.append(Fault(method="chat.startStream", kind="error_before"))
    view = thread.view()
    with pytest.raises(CallFailed):
        await grow(view, "One")
    await grow(view, "One two")
    await view.close()
    assert thread.texts() == ["One two"]


async def test_a_stream_that_a_dead_process_left_open_can_be_edited(thread: Thread) -> None:
    dead = thread.view()
    await grow(dead, "One")
    successor = thread.view(native_id=dead.native_id)
    await grow(successor, "One two")
    await successor.close()
    await thread.finish(successor, "One two three")
    assert thread.texts() == ["One two three"]


async def test_what_streams_is_inert(thread: Thread) -> None:
    view = thread.view()
    await grow(view, "<!channel> [x](https://evil.example/?d=SECRET) <@U1> @here")
    streamed = thread.live.slack.calls[-1].payload["markdown_text"]
    assert isinstance(streamed, str)
    assert "://" not in streamed
    assert "<!" not in streamed
    assert "@h" not in streamed
    assert thread.live.slack.workspace.mass_mentions == []
    await view.close()


async def test_the_reader_may_stop_a_stream(thread: Thread) -> None:
    view = thread.view()
    await grow(view, "One")
    thread.live.slack.web.stopped_by_user = True
    await grow(view, "One two", "One two three")
    await view.close()
    assert thread.texts() == ["One"]
    thread.live.slack.web.stopped_by_user = False
    await thread.finish(view, "One. (Stopped.)")
    assert thread.texts() == ["One. (Stopped.)"]


async def test_a_preview_of_a_process_that_died_is_looked_for_before_anything_is_shown(live: Running) -> None:
    ann = live.slack.person("ann")
    place = live.slack.private_chat(ann)
    key = thread_of(place.chat)
    first = live.adapter.open_view(key, key="m_9:0", reply_handle="", native_id="")
    assert first is not None
    since = SystemClock().now()
    await first.show(Outgoing(text="The whole", unfinished=True))

    for shows in (True, False):
        later = live.adapter.open_view(key, key="m_9:0", reply_handle="", native_id="", doubtful_since=since)
        assert later is not None
        if shows:
            await later.show(Outgoing(text="The whole answer", unfinished=True))
        await later.close()
        assert later.native_id == first.native_id
    assert len(live.slack.bot_texts(place)) == 1
    assert live.slack.bot_texts(place)[0].startswith("The whole answer")
