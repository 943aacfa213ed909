"""In a direct chat a reaction on the person's message shows that the bot is at work, until the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.channel import Outgoing
from adapters.slack.adapter import SlackAdapter
from adapters.slack.reactions import EMOJI
from pipeline.domain.clock import SystemClock
from pipeline.domain.messages import InboundMessage
from tests.adapters.slack.harness import Running, running, settings_for, thread_of
from tests.support.platforms.platform import Fault, Place
from tests.support.platforms.slack import FakeSlack


@pytest.fixture
async def live() -> AsyncIterator[Running]:
    async with FakeSlack(echo_own=False) as slack, running(slack) as live:
        yield live


async def said(live: Running) -> tuple[Place, str]:
    """A direct chat in which somebody has said something, and the timestamp of that."""
    ann = live.slack.person("ann")
    place = live.slack.private_chat(ann)
    native_id = await live.slack.say(place, ann, "hello")
    await live.until(lambda: bool(live.inbox.items))
    return place, native_id.partition(":")[2]


def calls(live: Running, method: str) -> int:
    return [call.method for call in live.slack.calls].count(method)


@pytest.mark.parametrize("by_edit", [False, True])
async def test_the_reaction_stays_until_the_answer_is_posted_or_edited_in(
    live: Running, by_edit: bool
) -> None:
    place, ts = await said(live)
    thread = thread_of(place.chat)
    part = live.adapter.render(Outgoing(text="done"))[0]
    view = live.adapter.open_view(thread, key="m:0", reply_handle="", native_id="")
    if by_edit:
        assert view is not None
        await view.show(Outgoing(text="do", unfinished=True))
    for _ in range(2):
        await live.adapter.typing(thread)
    assert live.slack.workspace.reactions == [(place.chat, ts, EMOJI)]
    assert calls(live, "reactions.add") == 1

    if by_edit:
        assert view is not None
        await live.adapter.edit(thread, view.native_id, part)
    else:
        await live.adapter.post(thread, part, key="m:0")
    assert live.slack.workspace.reactions == []
    assert len([one for one in live.slack.visible(place) if one.author == ""]) == 1


async def test_a_removal_that_fails_does_not_fail_the_answer_and_is_made_with_the_next(live: Running) -> None:
    place, ts = await said(live)
    thread = thread_of(place.chat)
    part = live.adapter.render(Outgoing(text="done"))[0]
    await live.adapter.typing(thread)
    live.slack.faults.script.append(Fault(method="reactions.remove", kind="error_before"))
    await live.adapter.post(thread, part, key="m:0")
    assert live.slack.workspace.reactions == [(place.chat, ts, EMOJI)]
    await live.adapter.post(thread, part, key="n:0")
    assert live.slack.workspace.reactions == []


async def test_an_app_without_the_scope_is_asked_once(live: Running) -> None:
    place, _ = await said(live)
    live.slack.faults.script.append(Fault(method="reactions.add", kind="forbid"))
    for _ in range(3):
        await live.adapter.typing(thread_of(place.chat))
    await live.adapter.post(thread_of(place.chat), live.adapter.render(Outgoing(text="done"))[0], key="m:0")
    assert (calls(live, "reactions.add"), calls(live, "reactions.remove")) == (1, 0)


async def test_a_reaction_that_a_killed_process_left_goes_with_the_answer(live: Running) -> None:
    place, _ = await said(live)
    await live.adapter.typing(thread_of(place.chat))
    (item,) = live.inbox.items
    assert isinstance(item, InboundMessage)
    later = SlackAdapter(settings_for(live.slack), SystemClock())
    part = later.render(Outgoing(text="done"))[0]
    await later.post(thread_of(place.chat), part, key="m:0", reply_handle=item.reply_handle)
    assert live.slack.workspace.reactions == []
