"""Live replies on a posting channel: previews that grow and give way, typing, questions of a working turn."""

from __future__ import annotations

from gateway.delivery.origin import Origin
from pipeline.domain.errors import StorageError
from pipeline.domain.events import (
    ApprovalRequired,
    ErrorEvent,
    LlmToken,
    ResponseComplete,
    TranscriptPartial,
    TranscriptPending,
    TranscriptReady,
    TurnStarted,
)
from tests.gateway.delivery_harness import open_delivery, restarted, tokens
from tests.support.posting_channel import MemoryPosts, refusal


async def test_the_answer_grows_in_one_message_and_the_final_words_take_it_over() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        for event in tokens("The ", "ans"):
            await sender.send_event(event)
        await out.clock.advance(1)
        assert (out.channel.texts(), out.channel.messages[0].buttons) == (["The ans"], ("Stop",))
        (noted,) = await out.store.shown("m1")
        assert (noted.part, noted.native_id, noted.final) == (0, "n1", False)
        await sender.send_event(LlmToken(session_id="s", message_id="m1", text="wer", offset=7))
        await out.clock.advance(5)
        assert out.channel.texts() == ["The answer"]
        row = await out.send("The answer.")
        assert out.channel.texts() == ["The answer."]
        assert (out.channel.messages[0].buttons, row.receipt) == ((), "n1")


async def test_an_answer_that_is_ready_at_once_has_no_preview() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        for event in tokens("The answer"):
            await sender.send_event(event)
        reply = await out.reply("The answer")
        out.delivery.enqueue(out.row_id, reply)
        done = ResponseComplete(session_id="s", message_id="m1", content="The answer", entry_id=1)
        await sender.send_event(done)
        await out.clock.advance(10)
        assert out.channel.calls == ["post The answer"]


async def test_previews_are_sampled_not_queued() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        for number, event in enumerate(tokens(*("x" for _ in range(30)))):
            await sender.send_event(event)
            await out.clock.advance(0.1 if number else 0.8)
        # Three seconds of text at the pace of one edit in 1.1 s.
        assert 3 <= len(out.channel.calls) <= 4


async def test_the_interrupted_turns_preview_is_gone_on_with_and_not_left_behind() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await sender.send_event(tokens("The first try")[0])
        await out.clock.advance(1)
        out.row_id = 0
        later = await restarted(out)
        sender = later.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await sender.send_event(tokens("The second")[0])
        await later.clock.advance(1)
        assert out.channel.texts() == ["The second"]
        await later.send("The second try")
        assert out.channel.texts() == ["The second try"]
        await later.supervisor.close()


async def test_a_preview_that_no_one_knows_of_becomes_the_answer_where_it_has_the_answers_nonce() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.append(refusal("unknown", done=True))
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await sender.send_event(tokens("The")[0])
        await out.clock.advance(1)
        assert out.channel.texts() == ["The"]
        await out.send("The answer")
        assert (out.channel.texts(), out.channel.messages[0].buttons) == (["The answer"], ())


async def test_a_deleted_preview_makes_the_answer_a_separate_message() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await sender.send_event(tokens("The")[0])
        await out.clock.advance(1)
        out.channel.messages.clear()
        assert (await out.send("The answer")).state == "sent"
        assert out.channel.texts() == ["The answer"]


async def test_previews_that_fail_are_given_up_and_the_answer_arrives() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.append(refusal("permission"))
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        for event in tokens("The ", "answer"):
            await sender.send_event(event)
            await out.clock.advance(2)
        assert out.channel.calls == ["post The "]
        await out.send("The answer")
        assert out.channel.texts() == ["The answer"]


async def test_a_limited_preview_waits_as_long_as_requested() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.append(refusal("rate_limit", retry_after_s=20.0))
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await sender.send_event(tokens("The answer")[0])
        await out.clock.advance(19)
        assert out.channel.texts() == []
        await out.clock.advance(3)
        assert out.channel.texts() == ["The answer"]


async def test_what_was_heard_is_shown_at_once_and_stays_above_the_answer() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        heard = TranscriptReady(session_id="s", message_id="m1", text="hello", language="en", confidence=1.0)
        await sender.send_event(heard)
        await out.clock.advance(1)
        assert out.channel.texts() == ["heard: hello\n"]
        await out.send("Hi!", heard="hello")
        assert out.channel.texts() == ["heard: hello\nHi!"]


async def test_a_long_note_is_shown_waiting_growing_and_heard() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await sender.send_event(TranscriptPending(session_id="s", message_id="m1", ahead=2, eta_s=12.4))
        await out.clock.advance(2)
        assert out.channel.texts() == ["heard: In the queue, about 12 seconds.\n"]
        await sender.send_event(TranscriptPartial(session_id="s", message_id="m1", text="once upon"))
        await out.clock.advance(5)
        assert out.channel.texts() == ["heard: once upon …\n"]
        heard = TranscriptReady(
            session_id="s", message_id="m1", text="once upon a time", language="en", confidence=1
        )
        await sender.send_event(heard)
        await out.clock.advance(5)
        assert out.channel.texts() == ["heard: once upon a time\n"]
        await out.send("Yes?", heard="once upon a time")
        assert out.channel.texts() == ["heard: once upon a time\nYes?"]


async def test_how_a_spoken_answer_was_heard_is_not_shown_above_what_it_leads_to() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await sender.send_event(TranscriptPending(session_id="s", message_id="m1", ahead=2, eta_s=12.4))
        await out.clock.advance(2)
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        for event in tokens("On it"):
            await sender.send_event(event)
        await out.clock.advance(5)
        assert out.channel.texts() == ["On it"]


async def test_typing_is_a_lease_that_ends_with_the_turn() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce", typing_s=5.0)) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await out.clock.advance(9)
        assert out.channel.calls == ["typing c1"] * 3
        failed = ErrorEvent(session_id="s", message_id="m1", code="x", message="no", recoverable=True)
        await sender.send_event(failed)
        await out.clock.advance(60)
        assert out.channel.calls == ["typing c1"] * 3


async def test_typing_never_outlasts_a_turn_that_hangs() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce", typing_s=5.0)) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await out.clock.advance(3_600)
        assert len(out.channel.calls) <= 80


async def test_a_question_of_a_working_turn_is_posted_whole_with_its_buttons() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        question = ApprovalRequired(
            session_id="s",
            message_id="m1",
            interaction_id="int_1",
            tool_name="shell",
            reasoning="rm \u202e x",
            options=("allow", "deny"),
            timeout_s=60.0,
        )
        await sender.send_event(question)
        await out.clock.advance(1)
        shown = "".join(out.channel.texts())
        assert "<U+202E>" in shown
        assert "\u202e" not in shown
        assert out.channel.messages[-1].buttons == ("allow", "deny")


async def test_the_preview_of_an_account_that_is_given_up_is_not_continued() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await sender.send_event(tokens("The ans")[0])
        await out.clock.advance(1)
        await sender.send_event(LlmToken(session_id="s", message_id="m1", text="wer", offset=7))
        out.live.drop(("another", "main"))
        out.live.drop(out.channel.thread().account_key)
        await out.clock.advance(5)
        assert out.channel.texts() == ["The ans"], "another process shows the answer now"
        # With the account back, the reply finds the message in the store.
        await out.send("The answer.")
        assert out.channel.texts() == ["The answer."]


async def test_a_preview_waits_while_the_store_cannot_tell_whether_a_reply_comes_first() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        answers = iter([StorageError("away"), StorageError("away")])

        async def look() -> None:
            if (error := next(answers, None)) is not None:
                raise error

        out.live.look = look
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await sender.send_event(tokens("The answer")[0])
        await out.clock.advance(1)
        assert out.channel.texts() == []
        await out.clock.advance(2)
        assert out.channel.texts() == ["The answer"]
