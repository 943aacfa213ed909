"""A token that cannot be read for a moment, as while its file is being replaced."""

from __future__ import annotations

import pytest

from adapters.channel import Outgoing
from adapters.slack.adapter import SlackAdapter
from adapters.slack.failures import CallFailed
from pipeline.domain.clock import SystemClock
from pipeline.domain.errors import ConfigurationError, MediaUnavailable
from pipeline.domain.messages import MediaRef
from tests.adapters.slack.harness import settings_for, thread_of
from tests.support.platforms.slack import FakeSlack


def unreadable() -> str:
    raise ConfigurationError("channels.slack.bot_token: the file is not there")


async def test_without_a_token_nothing_was_sent_and_the_failure_says_why() -> None:
    async with FakeSlack(echo_own=False) as slack:
        adapter = SlackAdapter(settings_for(slack, bot_token=unreadable), SystemClock())
        thread = thread_of(slack.private_chat(slack.person("ann")).chat, "1.2")
        part = adapter.render(Outgoing(text="hello"))[0]
        with pytest.raises(CallFailed) as raised:
            await adapter.post(thread, part, key="m_1:0")
        failure = adapter.classify(raised.value)
        assert (failure.kind, failure.maybe_delivered) == ("auth", False)
        assert "bot_token" in failure.message
        await adapter.typing(thread)
        with pytest.raises(MediaUnavailable):
            await adapter.download(MediaRef(channel="slack", handle="F1"), max_bytes=10)
        assert slack.calls == []
