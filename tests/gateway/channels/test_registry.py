from __future__ import annotations

from gateway.channels.registry import ChannelRegistry, key_of
from pipeline.domain.ids import ThreadKey
from tests.support.posting_channel import MemoryPosts


def test_a_channel_is_found_by_any_thread_of_its_account_and_by_no_other() -> None:
    posts = MemoryPosts()
    registry = ChannelRegistry([posts])
    channel, account = key_of(posts)
    assert registry.of(ThreadKey(channel=channel, account=account, chat="1")) is posts
    assert registry.of(ThreadKey(channel=channel, account=account, chat="2", topic="3")) is posts
    assert registry.of(ThreadKey(channel=channel, account=f"{account}2", chat="1")) is None
    assert list(registry) == [posts]
