"""Many chats, many strangers, limits and stubborn platforms: sharing a queue does not harm the replies."""

from __future__ import annotations

import asyncio
from collections import deque

from adapters.channel import LiveView, Outgoing, RateLimits
from gateway.delivery.chat_queue import IDLE_QUEUES
from gateway.delivery.origin import Origin
from gateway.delivery.preview import MOST_LIVE
from pipeline.domain.events import ApprovalRequired, LlmToken, TurnStarted
from pipeline.domain.ids import ThreadKey
from tests.gateway.delivery.test_uncertain_delivery import FullDisk
from tests.gateway.delivery_harness import open_delivery, tokens
from tests.support.posting_channel import MemoryPosts, Refused, refusal

QUESTION = ApprovalRequired(
    session_id="s",
    message_id="m1",
    interaction_id="int_1",
    tool_name="shell",
    reasoning="rm x",
    options=("allow", "deny"),
    timeout_s=60.0,
)


class Unsure(MemoryPosts):
    """Its previews learn which message they are when they are closed, if `closing` lets them."""

    def __init__(self) -> None:
        super().__init__(resolution="lookup")
        self.closing: deque[Refused] = deque()

    def open_view(
        self,
        thread: ThreadKey,
        *,
        key: str,
        reply_handle: str,
        native_id: str,
        doubtful_since: float | None = None,
    ) -> LiveView | None:
        return _UnsureView(self, thread, key)


class _UnsureView:
    def __init__(self, channel: Unsure, thread: ThreadKey, key: str) -> None:
        self._channel = channel
        self._thread = thread
        self._key = key
        self._made = ""
        self.native_id = ""

    async def show(self, outgoing: Outgoing) -> None:
        part = self._channel.render(outgoing)[0]
        self._made = (await self._channel.post(self._thread, part, key=self._key)).native_id
        raise refusal("transient", done=True)

    async def close(self) -> None:
        self._channel.calls.append("close")
        if self._channel.closing:
            raise self._channel.closing.popleft()
        self.native_id = self._made


class SilentTyping(MemoryPosts):
    """Typing is answered 429."""

    async def typing(self, thread: ThreadKey) -> None:
        await super().typing(thread)
        raise refusal("rate_limit", retry_after_s=60.0)


async def test_a_chat_whose_queue_was_forgotten_shows_no_preview_beside_its_answer() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        sender = await out.begin("The")
        for number in range(IDLE_QUEUES + 1):
            out.queues.queue_for(out.channel, out.channel.thread(f"other-{number}"), private=True)
        await out.clock.advance(5)
        out.channel.gate = gate = asyncio.Event()
        await sender.send_event(LlmToken(session_id="s", message_id="m1", text=" ans", offset=3))
        await out.clock.advance(0.1)
        reply = await out.reply("The answer")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(0.1)
        assert out.channel.calls == ["post The", "edit The ans"], "the final waits for the preview's call"
        gate.set()
        await out.clock.advance(1)
        assert out.channel.texts() == ["The answer"]


async def test_the_preview_of_a_turn_that_fell_out_of_view_is_closed_and_does_not_come_back() -> None:
    async with open_delivery(Unsure()) as out:
        sender = await out.begin("The")
        for number in range(MOST_LIVE):
            out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id=f"later-{number}"))
        await out.clock.advance(0)
        assert out.channel.calls == ["post The", "close"]
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await sender.send_event(tokens("The answer")[0])
        await out.clock.advance(60)
        assert out.channel.calls == ["post The", "close"]


async def test_a_preview_whose_message_is_not_known_yet_is_found_before_the_answer_leaves() -> None:
    async with open_delivery(Unsure()) as out:
        channel = out.channel
        assert isinstance(channel, Unsure)
        channel.closing.extend([refusal("rate_limit", retry_after_s=10.0), refusal("transient")])
        await out.begin("The ans")
        assert (await out.send("The answer")).state == "sent"
        assert out.channel.texts() == ["The answer"]


async def test_a_store_that_cannot_be_read_costs_the_previews_and_no_call_that_the_answer_needs() -> None:
    store = FullDisk()
    async with open_delivery(
        MemoryPosts(resolution="nonce", rates=RateLimits(chat_per_s=1, chat_burst=3)), store
    ) as out:
        store.failing["shown"] = 1_000
        sender = await out.begin("x")
        for event in tokens(*("x" for _ in range(50)))[1:]:
            await sender.send_event(event)
            await out.clock.advance(0.1)
        assert store.failing["shown"] == 999
        store.failing["shown"] = 0
        reply = await out.reply("The answer")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(0)
        assert out.channel.texts() == ["The answer"]


async def test_a_crowd_that_is_refused_does_not_hold_the_reply_up() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce", rates=RateLimits(room_per_minute=20))) as out:
        for number in range(100):
            out.delivery.say(out.channel.thread(), f"Not you, {number}.", private=False)
        reply = await out.reply("The answer")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(1)
        assert "The answer" in out.channel.texts()
        out.delivery.say(out.channel.thread(), "Nor you.", private=False)
        await out.clock.advance(60)
        assert out.channel.texts()[-1] == "Nor you."


async def test_a_notice_that_is_limited_keeps_what_follows_from_the_platform() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.append(refusal("rate_limit", retry_after_s=30.0))
        out.delivery.say(out.channel.thread(), "Not allowed.")
        await out.clock.advance(0)
        reply = await out.reply("The answer")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(29)
        assert out.channel.calls == ["post Not allowed."]
        await out.clock.advance(2)
        assert out.channel.texts() == ["Not allowed.", "The answer"]


async def test_a_question_that_is_limited_is_asked_when_the_platform_allows_it() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.extend([refusal("rate_limit", retry_after_s=20.0), refusal("transient")])
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(QUESTION)
        await out.clock.advance(19)
        assert len(out.channel.calls) == 1
        await out.clock.advance(10)
        assert out.channel.messages[-1].buttons == ("allow", "deny")
        assert len({message.key for message in out.channel.messages}) == len(out.channel.messages)


async def test_typing_that_is_limited_waits_as_long_as_requested() -> None:
    async with open_delivery(SilentTyping(resolution="nonce", typing_s=5.0)) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await out.clock.advance(59)
        assert out.channel.calls == ["typing c1"]
        await out.clock.advance(2)
        assert out.channel.calls == ["typing c1"] * 2
