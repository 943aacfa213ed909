"""Answers read aloud on the page, what silences them, and the words of a voice note that grow."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from tests.end_to_end.page.acts import ask, entries, ready
from tests.end_to_end.page.fake_gateway import FakeGateway
from tests.end_to_end.page.test_talk import talk, words

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SOUND = (Path(__file__).parents[2] / "data" / "voice-notes" / "voice.oga").read_bytes()
PLAYS = "audio => !audio.paused && audio.currentTime > 0"


async def answered(room: Page, gateway: FakeGateway, text: str = "Water.") -> Locator:
    """A finished answer; its row."""
    message = await ask(room, gateway, "tides?")
    await gateway.answer(message, text)
    row = entries(room, "assistant").last
    await expect(row).to_contain_text(text)
    return row


async def wait_until_it_plays(room: Page, player: Locator) -> None:
    handle = await player.element_handle()
    await room.wait_for_function(PLAYS, arg=handle)


async def test_listen_asks_for_the_sound_and_plays_it_below_the_answer(
    room: Page, gateway: FakeGateway
) -> None:
    row = await answered(room, gateway)
    await row.get_by_role("button", name="Listen to the answer").click()
    frame = await gateway.received("speak")
    assert frame["entry_id"] == 2
    await expect(row).to_contain_text("Getting the sound…")
    await gateway.read_aloud(frame, SOUND)
    player = row.locator("audio")
    await expect(player).to_have_attribute("controls", "")
    await expect(player).to_have_accessible_name("The answer, read aloud")
    await wait_until_it_plays(room, player)
    assert await player.evaluate("audio => audio.duration") > 1
    await expect(row.get_by_role("button", name="Listen to the answer")).to_have_count(0)
    await room.keyboard.press("Escape")
    await room.wait_for_function("audio => audio.paused", arg=await player.element_handle())


async def test_a_long_answer_is_heard_from_its_first_sentence_on_while_the_rest_is_made(
    room: Page, gateway: FakeGateway
) -> None:
    row = await answered(room, gateway)
    await row.get_by_role("button", name="Listen to the answer").click()
    frame = await gateway.received("speak")
    assert frame["part"] == 0
    await gateway.read_aloud(frame, SOUND, parts=2)
    player = row.locator("audio")
    await wait_until_it_plays(room, player)
    handle = await player.element_handle()
    first = await player.evaluate("audio => audio.src")
    # The rest is late: the player waits for it and continues.
    await room.wait_for_function("audio => audio.ended", arg=handle)
    second = await gateway.received("speak", 2)
    assert (second["part"], second["entry_id"]) == (1, frame["entry_id"])
    await gateway.read_aloud(second, SOUND, parts=2)
    await room.wait_for_function("([audio, src]) => audio.src !== src && !audio.paused", arg=[handle, first])
    await room.wait_for_function("([audio, src]) => audio.src === src && audio.paused", arg=[handle, first])
    assert len(gateway.of("speak")) == 2


async def test_what_the_gateway_does_not_keep_it_is_not_asked_to_read(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    await answered(room, gateway)
    await gateway.send(gateway.write("session", "Off the record", chat=gateway.chat, code="otr"))
    row = await answered(room, gateway, "Forgotten.")
    await expect(row.get_by_role("button", name="Copy answer")).to_be_visible()
    await expect(row.get_by_role("button", name="Listen to the answer")).to_have_count(0)
    await gateway.send(gateway.write("session", "On the record", chat=gateway.chat))
    row = await answered(room, gateway, "Kept.")
    await expect(row.get_by_role("button", name="Listen to the answer")).to_be_visible()


async def test_in_a_conversation_answers_are_read_by_themselves_and_a_voice_silences_them(
    room: Page, gateway: FakeGateway
) -> None:
    await talk(room)
    await answered(room, gateway)
    aloud = room.get_by_test_id("read-aloud")
    await expect(aloud).to_have_attribute("aria-pressed", "false")
    assert gateway.of("speak") == []
    await aloud.click()
    await expect(aloud).to_have_attribute("aria-pressed", "true")
    row = await answered(room, gateway, "More water.")
    await gateway.read_aloud(await gateway.received("speak"), SOUND)
    await gateway.end_reading(await gateway.received("speak", 2))
    await wait_until_it_plays(room, row.locator("audio"))
    await expect(words(room)).to_have_text("Speaking")
    await gateway.hear("speech_started")
    await expect(words(room)).to_have_text("Hearing you…")
    assert await row.locator("audio").evaluate("audio => audio.paused")
    await gateway.hear("speech_dropped", reason="nothing_heard", message="")
    await expect(words(room)).to_have_text("Listening")


async def test_sound_that_comes_after_somebody_spoke_does_not_play(room: Page, gateway: FakeGateway) -> None:
    await talk(room)
    row = await answered(room, gateway)
    await row.get_by_role("button", name="Listen to the answer").click()
    frame = await gateway.received("speak")
    await gateway.hear("speech_started")
    await expect(words(room)).to_have_text("Hearing you…")
    await gateway.read_aloud(frame, SOUND)
    await expect(row.locator("audio")).to_be_visible()
    assert await row.locator("audio").evaluate("audio => audio.paused && audio.currentTime === 0")


async def test_what_cannot_be_read_is_reported_and_can_be_retried(room: Page, gateway: FakeGateway) -> None:
    row = await answered(room, gateway)
    gateway.refusal = lambda _frame: {"code": "speech_unavailable", "message": "There is no voice for it."}
    await row.get_by_role("button", name="Listen to the answer").click()
    await expect(room.get_by_role("alert")).to_contain_text("There is no voice for it.")
    gateway.refusal = lambda _frame: None
    await row.get_by_role("button", name="Listen to the answer").click()
    await gateway.received("speak", 2)
    gateway.cut()
    await gateway.greeted(2)
    await ready(room)
    await expect(row.get_by_role("button", name="Listen to the answer")).to_be_visible()


async def test_one_answer_plays_at_a_time_and_few_players_stay(room: Page, gateway: FakeGateway) -> None:
    for number in range(10):
        row = await answered(room, gateway, f"Answer {number}.")
        await row.get_by_role("button", name="Listen to the answer").click()
        await gateway.read_aloud(await gateway.received("speak", number + 1), SOUND)
        await wait_until_it_plays(room, row.locator("audio"))
    await expect(room.locator("audio")).to_have_count(8)
    playing = "all => all.filter((audio) => !audio.paused).length"
    assert await room.locator("audio").evaluate_all(playing) == 1
    await expect(entries(room, "assistant").first.get_by_role("button", name="Listen")).to_be_visible()


async def test_a_voice_note_tells_how_long_it_waits_and_then_its_words_grow(
    room: Page, gateway: FakeGateway
) -> None:
    mic = room.get_by_test_id("mic")
    await mic.click()
    await expect(room.get_by_role("timer")).to_have_text("0:01 / 5:00")
    await mic.click()
    note = await gateway.received("voice")
    await gateway.wait(lambda: "bytes" in note, "the voice note's bytes")
    row = entries(room, "user")
    await expect(row).to_have_attribute("data-state", "queued")
    message = gateway.id_of(note)
    await gateway.event("transcript_pending", message, ahead=2, eta_s=19.6)
    await expect(row).to_contain_text("Waiting for its turn, about 20 s")
    await gateway.event("transcript_pending", message, ahead=0, eta_s=0.2)
    await expect(row).to_contain_text("Listening to your note…")
    await gateway.event("transcript_partial", message, text="So what")
    await expect(row.get_by_test_id("transcript")).to_have_text("So what …")
    await gateway.event("transcript_partial", message, text="So what is a tide")
    await expect(row.get_by_test_id("transcript")).to_have_text("So what is a tide …")
    fields = {"text": "So what is a tide?", "language": "en", "confidence": 0.9}
    await gateway.event("transcript_ready", message, **fields)
    await expect(row.get_by_test_id("transcript")).to_have_text("So what is a tide?")


@pytest.mark.parametrize("choice", ["Send", "Edit", "Retry"])
async def test_the_question_whether_it_was_heard_right(kept: tuple[Page, FakeGateway], choice: str) -> None:
    room, gateway = kept
    message = await ask(room, gateway, "(mumbled)")
    await gateway.begin(message)
    heard = "he said “tide” twice"
    question = {"interaction_id": "i_1", "tool_name": "intake", "timeout_s": 0.0}
    reasoning = f"I heard: “{heard}”"
    options = ["Send", "Edit", "Retry"]
    await gateway.event("approval_required", message, reasoning=reasoning, options=options, **question)
    card = entries(room, "approval")
    await expect(card).to_contain_text("Did I hear that right?")
    await expect(card).to_contain_text(reasoning)
    await gateway.complete(message, f"{reasoning}\n(Send / Edit / Retry)")
    await expect(card).not_to_contain_text(reasoning)
    await expect(card.get_by_role("group")).to_have_accessible_name(f"Answer to: {reasoning}")
    await card.get_by_role("button", name=choice).click()
    assert (await gateway.received("approval"))["choice"] == choice
    composer = room.get_by_test_id("composer")
    await expect(composer).to_have_value(heard if choice == "Edit" else "")
    if choice == "Retry":
        await expect(room.get_by_test_id("mic")).to_be_focused()
    if choice == "Edit":
        await expect(composer).to_be_focused()
