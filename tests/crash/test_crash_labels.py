"""Death at each labelled place between a message's arrival and its receipt, as the client sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.runtime.crash_labels import LABELS, Label
from tests.support.gateway_process import GatewayProcess, slow_echo
from tests.support.store_file import StoredMessage, integrity, stored_messages
from tests.support.web_client import WebChat

pytestmark = pytest.mark.crash

_CRASHED = 137
_TEXT = "one two three"
_ANSWER = "You said: one two three"


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    async with GatewayProcess(tmp_path, overrides=slow_echo(0.01)) as gateway:
        yield gateway


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What is true at the moment of death."""

    durable: bool = True
    """The message is in the inbox."""
    acknowledged: bool = True
    """The client has seen `accepted`."""
    answered: bool = False
    """The answer is in the log."""
    outbox: tuple[tuple[str, int], ...] = ()
    """(state, attempts) of the reply."""


_PLACES: dict[Label, Place] = {
    "inbox-commit-before": Place(durable=False, acknowledged=False),
    "inbox-commit-after": Place(acknowledged=False),
    "turn-commit-before": Place(),
    # The page shows what is on record, so a reply there counts as sent with the commit of its turn.
    "turn-commit-after": Place(answered=True, outbox=(("sent", 0),)),
    "send-before": Place(answered=True, outbox=(("sent", 0),)),
    "send-after": Place(answered=True, outbox=(("sent", 0),)),
}


_ELSEWHERE = {
    *("audit-decided-before", "audit-decided-after", "audit-done-before", "audit-done-after"),
    *("change-begun", "undo-begun", "undo-written"),
    *("join-before", "join-after"),
    "crisis-notice-queued",
    *("watch-fired-before", "watch-fired-after", "heartbeat-news-queued"),
    *("heartbeat-commit-before", "heartbeat-commit-after", "heartbeat-cancelled"),
    *("place-before", "place-after", "voice-before", "voice-after", "receipt-before", "receipt-after"),
    *("effect-begun-before", "effect-begun-after", "effect-done-before", "effect-done-after"),
    *("redeem-before", "redeem-after", "deletion-begun", "erase-before", "erase-after"),
    *("memory-before", "memory-after", "session-end-before", "session-end-after"),
    *("session-memory-before", "session-memory-after"),
    *("person-chats-erased", "person-room-redacted", "person-forgotten", "person-compacted"),
}
"""See the tests named after them, such as test_tool_crash_labels.py and test_invitation_kills.py."""


def test_every_label_has_its_place() -> None:
    assert set(_PLACES) | _ELSEWHERE == set(LABELS)


@pytest.mark.parametrize("label", _PLACES)
async def test_death_at_a_label_and_a_resend_give_one_answer(gateway: GatewayProcess, label: Label) -> None:
    place = _PLACES[label]
    async with WebChat() as chat:
        await gateway.start(crash_at=f"{label}:1")
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("c1", _TEXT)
        await chat.read_to_the_end()
        assert await gateway.wait_exit() == _CRASHED

        assert ("c1" in chat.seen.accepted) == place.acknowledged
        if not place.answered:
            assert chat.seen.terminals == []
        _check_file(gateway, place)

        await gateway.start()
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("c1", _TEXT)
        message_id = await chat.accepted("c1")
        answer = await chat.answer(message_id)
        await chat.ping()

        assert answer.text == _ANSWER
        assert chat.seen.duplicates == (1 if place.durable else 0)
        assert len(chat.seen.terminals_of(message_id)) <= 1
        await _check_settled(gateway, chat, message_id)


@pytest.mark.parametrize("label", [label for label, place in _PLACES.items() if place.durable])
async def test_what_was_durable_is_answered_without_a_resend(gateway: GatewayProcess, label: Label) -> None:
    async with WebChat() as chat:
        await gateway.start(crash_at=f"{label}:1")
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("c1", _TEXT)
        await chat.read_to_the_end()
        assert await gateway.wait_exit() == _CRASHED

        await gateway.start()
        await chat.connect(gateway.url, gateway.token, after=0)
        (message_id,) = {line.message_id for line in chat.seen.lines}
        assert (await chat.answer(message_id)).text == _ANSWER
        await _check_settled(gateway, chat, message_id)


async def test_a_committed_answer_is_not_thought_up_again(gateway: GatewayProcess) -> None:
    async with WebChat() as chat:
        await gateway.start(crash_at="turn-commit-after:1")
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("c1", _TEXT)
        await chat.read_to_the_end()
        await gateway.wait_exit()
        await gateway.start()
        await chat.connect(gateway.url, gateway.token)
        message_id = chat.seen.accepted["c1"]
        await chat.answer(message_id)
        assert await gateway.stop() == 0
        assert stored_messages(gateway.store_path)[message_id].attempts == 1


async def test_a_message_that_kills_the_process_three_times_is_set_aside_in_words(
    gateway: GatewayProcess,
) -> None:
    async with WebChat() as chat:
        await gateway.start(crash_at="turn-commit-before:1")
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("poison", "boom")
        await chat.read_to_the_end()
        assert await gateway.wait_exit() == _CRASHED
        for _ in range(2):
            await gateway.spawn(crash_at="turn-commit-before:1")
            assert await gateway.wait_exit() == _CRASHED

        await gateway.start()
        await chat.connect(gateway.url, gateway.token, after=0)
        message_id = chat.seen.accepted["poison"]
        while not (errors := chat.seen.lines_of(message_id, "error")):
            await chat.receive()
        assert errors[0].code == "gave_up"
        assert "3 times" in errors[0].text
        assert chat.seen.lines_of(message_id, "assistant") == []

        await chat.send_text("next", "and now?")
        following = await chat.accepted("next")
        assert (await chat.terminal(following)).text == "You said: and now?"
        assert await gateway.stop() == 0
        stored = stored_messages(gateway.store_path)
        assert (stored[message_id].outcome, stored[message_id].attempts) == ("error", 3)
        assert stored[following].outcome == "answered"


def _check_file(gateway: GatewayProcess, place: Place) -> None:
    assert integrity(gateway.store_path) == "ok"
    stored = tuple(stored_messages(gateway.store_path).values())
    assert len(stored) == place.durable
    for message in stored:
        assert message.outcome == ("answered" if place.answered else None)
        assert message.assistant_records == place.answered
        assert message.outbox == place.outbox


async def _check_settled(gateway: GatewayProcess, chat: WebChat, message_id: str) -> None:
    """After an orderly end: one answer, sent once or resolved, and a fresh client is shown it once."""
    async with WebChat(chat=chat.chat) as fresh:
        await fresh.connect(gateway.url, gateway.token)
        assert [(line.role, line.text) for line in fresh.seen.lines] == [
            ("user", _TEXT),
            ("assistant", _ANSWER),
        ]
    assert await gateway.stop() == 0
    stored: dict[str, StoredMessage] = stored_messages(gateway.store_path)
    assert set(stored) == {message_id}
    assert stored[message_id].outcome == "answered"
    assert (stored[message_id].user_records, stored[message_id].assistant_records) == (1, 1)
    assert [state for state, _ in stored[message_id].outbox] == ["sent"]


@pytest.mark.parametrize("label", ["inbox-commit-before", "turn-commit-before", "turn-commit-after"])
async def test_the_audio_of_a_note_outlives_a_crash_only_as_long_as_it_is_needed(
    gateway: GatewayProcess, label: Label
) -> None:
    media = gateway.data_dir / "media"
    async with WebChat() as chat:
        await gateway.start(crash_at=f"{label}:1")
        await chat.connect(gateway.url, gateway.token)
        await chat.send_voice("v1", b"\x1aE\xdf\xa3 some audio", mime="audio/webm")
        await chat.read_to_the_end()
        assert await gateway.wait_exit() == _CRASHED
        assert len(list(media.iterdir())) == 1

        await gateway.start()
        await chat.connect(gateway.url, gateway.token)
        if label == "inbox-commit-before":
            assert list(media.iterdir()) == []
        await chat.send_voice("v1", b"\x1aE\xdf\xa3 some audio", mime="audio/webm")
        answer = await chat.answer(await chat.accepted("v1"))
        assert answer.text == "You said: hello"
    assert await gateway.stop() == 0
    await gateway.start()
    assert list(media.iterdir()) == []
