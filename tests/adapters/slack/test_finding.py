"""Looking for a post of an earlier process, before this one has heard who the bot is."""

from __future__ import annotations

import pytest

from adapters.channel import Outgoing
from adapters.slack.adapter import SlackAdapter
from pipeline.domain.clock import SystemClock
from tests.adapters.slack.harness import running, settings_for, thread_of
from tests.support.platforms.slack import FakeSlack


async def test_a_post_is_found_by_a_process_that_does_not_receive_yet() -> None:
    async with FakeSlack(echo_own=False) as slack:
        thread = thread_of(slack.private_chat(slack.person("ann")).chat)
        async with running(slack) as live:
            part = live.adapter.render(Outgoing(text="the answer"))[0]
            receipt = await live.adapter.post(thread, part, key="m_1:0")
        after = SlackAdapter(settings_for(slack), SystemClock())
        assert await after.find(thread, part, key="m_1:0", since=0) == receipt
        assert await after.find(thread, part, key="m_1:1", since=0) is None


async def test_who_cannot_tell_the_bot_does_not_say_that_nothing_was_posted() -> None:
    async with FakeSlack(echo_own=False) as slack:
        thread = thread_of(slack.private_chat(slack.person("ann")).chat)
        adapter = SlackAdapter(settings_for(slack, bot_token=lambda: "xoxb-revoked"), SystemClock())
        part = adapter.render(Outgoing(text="the answer"))[0]
        with pytest.raises(Exception) as raised:  # noqa: PT011 - its kind is asked below
            await adapter.find(thread, part, key="m_1:0", since=0)
        assert adapter.classify(raised.value).kind == "auth"
