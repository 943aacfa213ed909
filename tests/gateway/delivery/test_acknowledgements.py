"""The reaction on a message that is taken: after the reply in every respect, and harmless when it fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from adapters.channel import RateLimits
from gateway.channels.registry import ChannelRegistry
from gateway.delivery.acknowledgements import Acknowledgements
from gateway.delivery.chat_queue import ChatQueues
from gateway.delivery.origin import Origin
from gateway.delivery.preview import LiveReplies
from gateway.runtime.tasks import Supervisor
from gateway.storage.leases import AccountLeases, ProcessingCoordinator
from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import MessageJoined, ResponseComplete, TurnStarted
from pipeline.domain.ids import ThreadKey
from tests.support.posting_channel import MemoryPosts, refusal

FEW = RateLimits(chat_per_s=0.1, chat_burst=2)


class ReactingPosts(MemoryPosts):
    """A posting channel that puts reactions on messages."""

    def __init__(self, rates: RateLimits | None = None, *, wanted: bool = True) -> None:
        super().__init__(rates=rates or RateLimits())
        self.acknowledges = wanted
        self.reactions: list[tuple[str, bool]] = []
        self.refused: list[Exception] = []

    async def acknowledge(self, thread: ThreadKey, reply_handle: str, *, on: bool) -> None:
        self.reactions.append((reply_handle, on))
        if self.refused:
            raise self.refused.pop(0)


@dataclass(kw_only=True)
class Harness:
    posts: ReactingPosts
    clock: ManualClock
    taken: Acknowledgements
    queues: ChatQueues
    replies: list[str] = field(default_factory=list)

    def take(self, message_id: str = "m1", handle: str = "7") -> None:
        thread = self.posts.thread("c1")
        self.taken.taken(thread, message_id, reply_handle=handle, private=True, is_new=True)

    async def reply(self) -> None:
        """Post a reply, as the outbox does."""
        queue = self.queues.queue_for(self.posts, self.posts.thread("c1"), private=True)

        async def post() -> None:
            await queue.limiter.acquire()
            self.replies.append("posted")

        queue.submit(post)


@asynccontextmanager
async def _harness(posts: ReactingPosts) -> AsyncIterator[Harness]:
    clock, supervisor = ManualClock(), Supervisor()
    queues = ChatQueues(clock, supervisor)
    taken = Acknowledgements(channels=ChannelRegistry([posts]), queues=queues, clock=clock)
    try:
        yield Harness(posts=posts, clock=clock, taken=taken, queues=queues)
    finally:
        await supervisor.close()


async def test_it_is_set_once_and_removed_at_the_end() -> None:
    async with _harness(ReactingPosts()) as harness:
        harness.take()
        harness.take()
        await harness.clock.advance(1)
        assert harness.posts.reactions == [("7", True)]
        harness.taken.ended("m1")
        harness.taken.ended("m1")
        await harness.clock.advance(1)
        assert harness.posts.reactions == [("7", True), ("7", False)]


async def test_the_end_of_a_turn_removes_it_from_all_messages_that_the_turn_answers() -> None:
    async with _harness(ReactingPosts()) as harness:
        supervisor, store = Supervisor(), MemoryStore()
        await store.open()
        live = LiveReplies(
            store=store,
            leases=AccountLeases(ProcessingCoordinator(store, harness.clock, lease_s=30.0)),
            queues=harness.queues,
            clock=harness.clock,
            supervisor=supervisor,
            taken=harness.taken,
        )
        origin = Origin(message_id="m1", reply_handle="7")
        turn = live.sender_for(harness.posts, harness.posts.thread("c1"), origin)
        harness.take()
        harness.take("m2", handle="8")
        await turn.send_event(TurnStarted(session_id="s", message_id="m1"))
        await turn.send_event(MessageJoined(session_id="s", message_id="m1", joined="m2", reply_handle="8"))
        await harness.clock.advance(1)
        assert sorted(harness.posts.reactions) == [("7", True), ("8", True)]
        await turn.send_event(ResponseComplete(session_id="s", message_id="m1", content="Both."))
        await harness.clock.advance(1)
        assert sorted(harness.posts.reactions[2:]) == [("7", False), ("8", False)]
        await supervisor.close()


async def test_a_message_that_is_answered_at_once_has_none_and_neither_has_one_that_is_not_wanted() -> None:
    async with _harness(ReactingPosts()) as harness:
        harness.take()
        harness.taken.ended("m1")
        harness.take("m2", handle="")
        await harness.clock.advance(5)
        assert harness.posts.reactions == []
    async with _harness(ReactingPosts(wanted=False)) as harness:
        harness.take()
        await harness.clock.advance(5)
        assert harness.posts.reactions == []


async def test_it_never_takes_the_call_that_a_reply_needs() -> None:
    async with _harness(ReactingPosts(FEW)) as harness:
        harness.take()
        harness.take("m2", handle="8")
        await harness.clock.advance(1)
        assert harness.posts.reactions == [("7", True)], "one call is left, and it is the reply's"
        await harness.reply()
        await harness.clock.advance(0.1)
        assert harness.replies == ["posted"]


async def test_a_refusal_is_repeated_a_few_times_and_touches_no_reply() -> None:
    posts = ReactingPosts()
    posts.refused = [refusal("transient"), refusal("transient"), refusal("transient"), refusal("transient")]
    async with _harness(posts) as harness:
        harness.take()
        await harness.clock.advance(1)
        await harness.reply()
        await harness.clock.advance(60)
        assert harness.replies == ["posted"]
        assert posts.reactions == [("7", True)] * 3


async def test_a_rate_limit_of_reactions_delays_no_reply() -> None:
    posts = ReactingPosts()
    posts.refused = [refusal("rate_limit", retry_after_s=30.0)]
    async with _harness(posts) as harness:
        harness.take()
        await harness.clock.advance(1)
        await harness.reply()
        await harness.clock.advance(0.1)
        assert harness.replies == ["posted"]
        assert posts.reactions == [("7", True)]
        await harness.clock.advance(31)
        assert posts.reactions == [("7", True)] * 2


async def test_a_forbidden_reaction_is_not_tried_again() -> None:
    posts = ReactingPosts()
    posts.refused = [refusal("permission")]
    async with _harness(posts) as harness:
        harness.take()
        await harness.clock.advance(60)
        assert posts.reactions == [("7", True)]
