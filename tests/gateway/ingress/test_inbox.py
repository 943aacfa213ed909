"""The inbox's answers to refused people, and how it accepts answers by button and by typed text."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.access.policy import AccessRule
from pipeline.domain.messages import MediaRef
from tests.gateway.inbox_harness import ANN, BOB, open_inbox, place, press, text

GONE = "This question is no longer open."


# -- refusals ------------------------------------------------------------------------------------


async def test_a_refusal_is_posted_once_an_hour_to_each_person_in_each_chat(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        for number in range(5):
            refused = await harness.inbox.accept(text("hi", f"a{number}", user="7", thread=place("7")))
            assert refused.status == "refused"
            assert "dm:7" in refused.reason
        await harness.inbox.accept(text("hi", "b", user="8", thread=place("8")))
        assert [thread for thread, _ in harness.said] == ["telegram:main:7", "telegram:main:8"]
        await harness.clock.advance(3600)
        await harness.inbox.accept(text("hi", "c", user="7", thread=place("7")))
        assert len(harness.said) == 3
        assert (await harness.store.counts()).inbox_open == 0
        assert harness.refused() == 7


async def test_what_was_not_meant_for_the_bot_leaves_no_trace(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        refused = await harness.inbox.accept(
            text("lunch?", "a", user="7", thread=place("-5"), addressed=False)
        )
        assert (refused.status, refused.reason) == ("refused", "")
        assert (harness.said, harness.refused(), (await harness.store.counts()).inbox_open) == ([], 0, 0)


async def test_a_denied_person_gets_no_answer(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        assert (await harness.inbox.accept(text("hi", "a", user="9", thread=place("9")))).reason == ""
        assert harness.said == []
        assert harness.refused() == 1


async def test_a_refused_press_is_answered_by_its_channel_and_not_posted(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        refused = await harness.inbox.accept(press("q1", 0, user="7", thread=place("7")))
        assert refused.status == "refused"
        assert refused.reason
        gone = await harness.inbox.accept(press("q1", 0))
        assert (gone.status, gone.reason) == ("refused", GONE)
        assert harness.said == []


async def test_a_full_queue_is_said_in_the_chat(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db", limit=1) as harness:
        for number in range(4):
            await harness.inbox.accept(text("hi", f"a{number}"))
        ((thread, words),) = harness.said
        assert thread == "telegram:main:1"
        assert "still waiting" in words
        await harness.clock.advance(60)
        await harness.inbox.accept(text("hi", "later"))
        assert len(harness.said) == 2


async def test_notes_that_may_not_be_for_the_bot_fill_no_queue_and_are_refused_in_silence(
    tmp_path: Path,
) -> None:
    hears = AccessRule.of(mode="list", allow=["room:-5"], hear_rooms=True)
    async with open_inbox(tmp_path / "store.db", hears, limit=4) as harness:
        taken = []
        for number in range(4):
            note = text("caption", f"a{number}", thread=place("-5"), addressed=False)
            sound = MediaRef(channel="telegram", handle="1", kind="voice")
            taken.append((await harness.inbox.accept(replace(note, voice=sound))).status)
        assert taken == ["accepted", "accepted", "refused", "refused"]
        assert (await harness.inbox.accept(text("hi", "b", thread=place("-5")))).status == "accepted"
        assert harness.said == []


async def test_each_person_in_a_room_is_informed_separately(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db", limit=1) as harness:
        for number, user in enumerate((ANN, BOB, ANN, BOB, ANN)):
            await harness.inbox.accept(text("hi", f"a{number}", user=user, thread=place("-5")))
        assert len(harness.said) == 2


async def test_channels_that_show_refusals_themselves_are_not_posted_to(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        refused = await harness.inbox.accept(text("hi", "a", user="7", thread=place("c", channel="console")))
        assert refused.reason == "You are not allowed to use this bot."
        assert harness.said == []


async def test_a_stranger_is_shown_a_code_once_and_what_they_wrote_is_nowhere(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db", AccessRule.of()) as harness:
        for number in range(3):
            await harness.inbox.accept(
                text("tell me a sesame secret", f"a{number}", user="7", thread=place("7"))
            )
        ((_, words),) = harness.said
        code = words.split("`")[1].removeprefix("parlour pair ")
        assert len(code) == 8
        counts = await harness.store.counts()
        assert (counts.inbox_open, counts.inbox_done, counts.records) == (0, 0, 0)
    content = _everything_in(tmp_path)
    assert b"sesame" not in content
    assert code.encode() not in content


def _everything_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


# -- answers by button ---------------------------------------------------------------------------


async def test_a_press_is_the_choice_in_words_and_leads_to_a_turn(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        await harness.ask("q1")
        assert (await harness.inbox.accept(press("q1", 1))).status == "accepted"
        (entry,) = await harness.store.open_entries("telegram:main:1")
        assert (entry.kind, entry.body["interaction"], entry.body["choice"]) == ("approval", "q1", "deny")
        assert harness.turns.woken == ["telegram:main:1"]
        again = await harness.inbox.accept(press("q1", 0))
        assert (again.status, again.reason) == ("refused", GONE)


async def test_two_presses_at_once_count_once(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        await harness.ask("q1")
        presses = [press("q1", number % 2, native_id=f"p{number}") for number in range(20)]
        found = await asyncio.gather(*(harness.inbox.accept(one) for one in presses))
        assert [one.status for one in found].count("accepted") == 1
        assert len(await harness.store.open_entries("telegram:main:1")) == 1


async def test_somebody_else_in_the_room_is_informed_whose_question_it_is(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        await harness.ask("q1", chat="-5")
        refused = await harness.inbox.accept(press("q1", 0, user=BOB, thread=place("-5")))
        assert refused.reason == "This question is for somebody else."
        assert (await harness.inbox.accept(press("q1", 0, thread=place("-5")))).status == "accepted"


@pytest.mark.parametrize("option", [-1, -2, 2, 10**12])
async def test_a_button_that_the_question_never_had_is_no_answer(tmp_path: Path, option: int) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        await harness.ask("q1")
        refused = await harness.inbox.accept(press("q1", option))
        assert refused.reason == "That is not one of the offered answers."
        assert len(await harness.store.pending_interactions("telegram:main:1", now=0.0)) == 1


async def test_a_blank_option_is_pressed_by_its_own_button_alone(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        await harness.ask("q1", options=("go", ""))
        assert (await harness.inbox.accept(press("q1", 2))).status == "refused"
        assert (await harness.inbox.accept(press("q1", 1))).status == "accepted"


# -- answers by typed words ----------------------------------------------------------------------


@pytest.mark.parametrize("words", ["approve", "  APPROVE\n", "1"])
async def test_typed_words_that_equal_a_choice_are_the_answer(tmp_path: Path, words: str) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        await harness.ask("q1")
        assert (await harness.inbox.accept(text(words, "a"))).status == "accepted"
        (entry,) = await harness.store.open_entries("telegram:main:1")
        assert (entry.kind, entry.body["interaction"], entry.body["choice"]) == ("approval", "q1", "approve")


async def test_a_redelivery_of_a_typed_answer_is_a_duplicate_and_no_turn(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        await harness.ask("q1")
        message = text("deny", "a")
        found = [await harness.inbox.accept(message) for _ in range(3)]
        assert [one.status for one in found] == ["accepted", "duplicate", "duplicate"]
        # Also when the same words would answer another question by now.
        await harness.ask("q2")
        assert (await harness.inbox.accept(message)).status == "duplicate"
        assert len(await harness.store.pending_interactions("telegram:main:1", now=0.0)) == 1
        assert len(await harness.store.open_entries("telegram:main:1")) == 1


async def test_deliveries_of_a_typed_answer_at_once_make_one_entry(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        await harness.ask("q1")
        found = await asyncio.gather(*(harness.inbox.accept(text("deny", "a")) for _ in range(10)))
        assert sorted(one.status for one in found) == ["accepted"] + ["duplicate"] * 9
        assert len(await harness.store.open_entries("telegram:main:1")) == 1


async def test_a_message_that_led_to_the_question_does_not_answer_it_when_it_comes_again(
    tmp_path: Path,
) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        message = text("approve", "a")
        assert (await harness.inbox.accept(message)).status == "accepted"
        await harness.ask("q1")
        assert (await harness.inbox.accept(message)).status == "duplicate"
        assert len(await harness.store.pending_interactions("telegram:main:1", now=0.0)) == 1


async def test_a_typed_answer_to_a_turn_that_waits_is_on_record_without_work(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        await harness.ask("q1", kind="tool")
        message = text("approve", "a")
        assert (await harness.inbox.accept(message)).status == "accepted"
        assert await harness.store.open_entries("telegram:main:1") == ()
        assert (await harness.inbox.accept(message)).status == "duplicate"


@pytest.mark.parametrize(
    ("words", "user"),
    [("approve it", ANN), ("approve", BOB), ("3", ANN), ("0", ANN), ("-1", ANN), ("٢", ANN), ("yes", ANN)],
)
async def test_other_words_and_other_people_send_messages(tmp_path: Path, words: str, user: str) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        await harness.ask("q1", chat="-5")
        await harness.inbox.accept(text(words, "a", user=user, thread=place("-5")))
        (entry,) = await harness.store.open_entries("telegram:main:-5")
        assert entry.kind == "message"


async def test_words_that_fit_two_questions_answer_none(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        await harness.ask("q1")
        await harness.ask("q2", options=("deny", "later"))
        for number, words in enumerate(("deny", "1")):
            await harness.inbox.accept(text(words, f"a{number}"))
        entries = await harness.store.open_entries("telegram:main:1")
        assert [entry.kind for entry in entries] == ["message", "message"]
        await harness.inbox.accept(text("later", "b"))
        assert (await harness.store.open_entries("telegram:main:1"))[-1].body["interaction"] == "q2"


async def test_in_a_room_everybody_answers_their_own_question(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        await harness.ask("ann's", chat="-5")
        await harness.ask("bob's", chat="-5", users=(BOB,))
        for number, (words, user) in enumerate((("approve", BOB), ("2", ANN))):
            await harness.inbox.accept(text(words, f"a{number}", user=user, thread=place("-5")))
        entries = await harness.store.open_entries("telegram:main:-5")
        assert [(entry.body["interaction"], entry.body["choice"]) for entry in entries] == [
            ("bob's", "approve"),
            ("ann's", "deny"),
        ]


async def test_a_number_that_is_an_option_is_that_option(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        await harness.ask("q1", options=("3", "2", "1"))
        await harness.inbox.accept(text("3", "a"))
        (entry,) = await harness.store.open_entries("telegram:main:1")
        assert entry.body["choice"] == "3"


async def test_only_somebodys_own_plain_words_answer(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        await harness.ask("q1")
        file = MediaRef(channel="telegram", handle="h")
        plain = text("approve", "a")
        for number, odd in enumerate(
            (
                replace(plain, forwarded=True),
                replace(plain, edited=True),
                replace(plain, voice=file),
                replace(plain, attachments=(file,)),
            )
        ):
            await harness.inbox.accept(replace(odd, native_id=f"b{number}"))
        entries = await harness.store.open_entries("telegram:main:1")
        assert [entry.kind for entry in entries] == ["message"] * 4


async def test_another_chats_question_is_not_answered_by_typed_words(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db") as harness:
        await harness.ask("q1")
        await harness.inbox.accept(text("approve", "a", thread=place("-5")))
        (entry,) = await harness.store.open_entries("telegram:main:-5")
        assert entry.kind == "message"
