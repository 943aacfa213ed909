"""What people do on Slack reaches the gateway, over socket mode and HTTP, and is acknowledged only then."""

from __future__ import annotations

from asyncio import Event, TaskGroup
from collections.abc import AsyncIterator

import pytest

from adapters.channel import Acceptance, Outgoing
from pipeline.domain.commands import COMMAND_NAMES
from pipeline.domain.errors import StorageError
from pipeline.domain.messages import ApprovalReply, InboundMessage, SessionCommand, Withdrawal, button_handle
from tests.adapters.slack.harness import Running, ask, question, running, thread_of
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.slack_state import APP, TEAM


@pytest.fixture(params=["socket", "http"])
async def live(request: pytest.FixtureRequest) -> AsyncIterator[Running]:
    async with FakeSlack(http=request.param == "http") as slack, running(slack) as live:
        yield live


async def test_a_text_arrives_and_is_acknowledged(live: Running) -> None:
    ann = live.slack.person("ann")
    native_id = await live.slack.say(live.slack.private_chat(ann), ann, "hello &amp; bye")
    await live.heard_all()
    [message] = live.inbox.items
    assert isinstance(message, InboundMessage)
    assert (message.native_id, message.text, message.private) == (native_id, "hello & bye", True)


async def test_nothing_is_acknowledged_before_the_gateway_has_it(live: Running) -> None:
    live.inbox.gate = Event()
    ann = live.slack.person("ann")
    await live.slack.say(live.slack.private_chat(ann), ann, "hello")
    await live.inbox.entered.wait()
    assert live.slack.unacknowledged() == 1
    live.inbox.gate.set()
    await live.heard_all()


async def test_what_the_gateway_could_not_keep_is_delivered_again(live: Running) -> None:
    live.slack.delivery.ack_deadline_s = 1.0
    live.inbox.failures = [StorageError("disk full"), StorageError("disk full")]
    ann = live.slack.person("ann")
    await live.slack.say(live.slack.private_chat(ann), ann, "hello")
    await live.heard_all()
    assert live.inbox.texts() == ["hello"]
    assert [envelope.retries for envelope in live.slack.delivery.delivered] == [2]
    assert live.slack.delivery.given_up == []


async def test_a_mention_arrives_twice_and_counts_once(live: Running) -> None:
    ann = live.slack.person("ann")
    await live.slack.say(live.slack.room("general", ann), ann, "hello")
    await live.heard_all()
    assert live.inbox.calls == 2
    [message] = live.inbox.items
    assert isinstance(message, InboundMessage)
    assert (message.text, message.addressed, message.private) == ("hello", True, False)
    assert message.thread.topic == message.native_id.partition(":")[2]


async def test_chatter_is_not_addressed_and_a_reply_to_the_bot_is(live: Running) -> None:
    ann = live.slack.person("ann")
    place = live.slack.room("general", ann)
    await live.slack.say(place, ann, "lunch?", addressed=False)
    await live.heard_all()
    [message] = live.inbox.items
    assert isinstance(message, InboundMessage)
    assert not message.addressed


async def test_edits_ask_again_and_link_previews_do_not(live: Running) -> None:
    ann = live.slack.person("ann")
    native_id = await live.slack.say(live.slack.private_chat(ann), ann, "helo")
    await live.slack.edit(native_id, "helo")
    await live.slack.edit(native_id, "hello")
    await live.slack.delete(native_id)
    await live.heard_all()
    assert live.inbox.texts() == ["helo", "hello"]
    edited = live.inbox.items[1]
    assert isinstance(edited, InboundMessage)
    assert edited.edited
    assert edited.native_id.startswith(f"{native_id}:e")
    gone = live.inbox.items[2]
    assert isinstance(gone, Withdrawal)
    assert gone.place == edited.place


async def test_bots_are_not_heard_the_bot_itself_least_of_all(live: Running) -> None:
    place = live.slack.private_chat(live.slack.person("ann"))
    await live.slack.say(place, live.slack.person("robot", bot=True), "beep")
    part = live.adapter.render(Outgoing(text="hello"))[0]
    receipt = await live.adapter.post(thread_of(place.chat), part, key="k")
    await live.adapter.edit(thread_of(place.chat), receipt.native_id, part)
    await live.heard_all()
    assert live.slack.bot_texts(place) == ["hello"]
    assert live.inbox.calls == 0


async def test_a_voice_note_is_one_whatever_its_type_says(live: Running) -> None:
    ann = live.slack.person("ann")
    await live.slack.speak(live.slack.private_chat(ann), ann, b"sound", mime="video/mp4")
    await live.heard_all()
    [message] = live.inbox.items
    assert isinstance(message, InboundMessage)
    assert message.voice is not None
    assert (message.voice.kind, message.voice.duration_s, message.text) == ("voice", 2.0, "")
    assert await live.adapter.download(message.voice, max_bytes=100) == b"sound"


async def test_a_pressed_answer_reaches_the_gateway_and_loses_its_buttons(live: Running) -> None:
    ann = live.slack.person("ann")
    place = live.slack.private_chat(ann)
    receipt = await ask(live, place.chat)
    words = await live.slack.press(place, ann, receipt, "Yes <!channel>")
    [item] = live.inbox.items
    assert isinstance(item, ApprovalReply)
    assert (item.interaction_id, item.option, item.choice) == (button_handle("i1"), 0, "")
    assert words == "You chose: Yes <!channel>"
    await live.until(lambda: live.slack.visible(place)[0].buttons == ())
    assert live.slack.bot_texts(place) == ["May I?"]
    assert live.slack.workspace.mass_mentions == []


@pytest.mark.parametrize(
    ("reason", "left"),
    [("This question is for somebody else.", 2), ("This question is no longer open.", 0), ("", 2)],
)
async def test_a_refused_press_is_explained(live: Running, reason: str, left: int) -> None:
    live.inbox.verdict = Acceptance(status="refused", message_id="m_1", reason=reason, over=not left)
    ann = live.slack.person("ann")
    place = live.slack.private_chat(ann)
    receipt = await ask(live, place.chat)
    assert await live.slack.press(place, ann, receipt, "No") == reason
    await live.until(lambda: len(live.slack.visible(place)[0].buttons) == left)


async def test_words_that_were_edited_while_a_press_was_under_way_stay(live: Running) -> None:
    """The press shows the message as it was before that edit."""
    live.inbox.gate = Event()
    ann = live.slack.person("ann")
    place = live.slack.private_chat(ann)
    receipt = await ask(live, place.chat)
    async with TaskGroup() as tasks:
        press = tasks.create_task(live.slack.press(place, ann, receipt, "No"))
        await live.inbox.entered.wait()
        answered = live.adapter.render(Outgoing(text="May I? Answered: No"))[0]
        await live.adapter.edit(thread_of(place.chat), receipt, answered)
        live.inbox.gate.set()
        assert await press == "You chose: No"
    # What follows the press in the adapter has been done once a later press is through.
    later = await ask(live, place.chat)
    await live.slack.press(place, ann, later, "No")
    await live.until(lambda: live.slack.visible(place)[1].buttons == ())
    assert live.slack.bot_texts(place)[0] == "May I? Answered: No"


async def test_an_edit_waits_for_the_one_before_it_on_the_same_message(live: Running) -> None:
    ann = live.slack.person("ann")
    place = live.slack.private_chat(ann)
    receipt = await ask(live, place.chat)
    held = Event()
    live.slack.workspace.held.gates.append(held)
    async with TaskGroup() as tasks:
        press = tasks.create_task(live.slack.press(place, ann, receipt, "No"))
        await live.until(lambda: live.slack.workspace.held.waiting == 1)
        answered = live.adapter.render(Outgoing(text="May I? Answered: No"))[0]
        edit = tasks.create_task(live.adapter.edit(thread_of(place.chat), receipt, answered))
        # Another message's edit is not held up, and is time enough for the one that must wait.
        other = await ask(live, place.chat)
        await live.adapter.edit(thread_of(place.chat), other, answered)
        held.set()
        await edit
        await press
    await live.until(lambda: live.slack.workspace.held.waiting == 0)
    assert [(shown.text, shown.buttons) for shown in live.slack.visible(place)] == [
        ("May I? Answered: No", ()),
        ("May I? Answered: No", ()),
    ]


async def test_the_other_questions_of_a_message_keep_their_buttons(live: Running) -> None:
    ann = live.slack.person("ann")
    place = live.slack.private_chat(ann)
    questions = tuple(question(f"i{number}", f"Yes {number}", "No") for number in range(3))
    part = live.adapter.render(Outgoing(text="May I?", questions=questions))[0]
    receipt = (await live.adapter.post(thread_of(place.chat), part, key="k")).native_id
    held = Event()
    live.slack.workspace.held.gates.append(held)
    async with TaskGroup() as tasks:
        # The second press shows the message with the buttons of both.
        first = tasks.create_task(live.slack.press(place, ann, receipt, "Yes 0"))
        await live.until(lambda: live.slack.workspace.held.waiting == 1)
        second = tasks.create_task(live.slack.press(place, ann, receipt, "Yes 1"))
        await live.until(lambda: len(live.inbox.items) == 2)
        held.set()
        await first
        await second
    await live.until(lambda: live.slack.visible(place)[0].edits == 2)
    assert live.slack.visible(place)[0].buttons == ("Yes 2", "No")


async def test_the_slash_command_is_answered_to_its_sender(live: Running) -> None:
    ann = live.slack.person("ann")
    place = live.slack.private_chat(ann)
    assert await live.slack.command(place, ann, "stop") == "Stopping."
    [item] = live.inbox.items
    assert isinstance(item, SessionCommand)
    assert (item.name, item.thread) == ("stop", thread_of(place.chat))
    assert "direct chat" in await live.slack.command(place, ann, "dance")
    assert "mention me" in await live.slack.command(live.slack.room("general", ann), ann, "stop")
    assert live.inbox.calls == 1


@pytest.mark.parametrize("name", COMMAND_NAMES)
async def test_each_command_can_follow_the_slash_command(live: Running, name: str) -> None:
    ann = live.slack.person("ann")
    answer = await live.slack.command(live.slack.private_chat(ann), ann, name)
    assert answer
    assert "after the command" not in answer
    assert [item.name for item in live.inbox.items if isinstance(item, SessionCommand)] == [name]


@pytest.mark.parametrize("text", ["/stop", " /stop ", "/STOP"])
async def test_a_command_can_be_typed_as_text(live: Running, text: str) -> None:
    ann = live.slack.person("ann")
    await live.slack.say(live.slack.private_chat(ann), ann, text)
    await live.slack.say(live.slack.room("general", ann), ann, text)
    await live.heard_all()
    assert [type(item) for item in live.inbox.items] == [SessionCommand, SessionCommand]


async def test_an_event_of_a_kind_no_one_knows_is_acknowledged_and_forgotten(live: Running) -> None:
    for inner in ({"type": "reaction_added"}, {"type": "message", "subtype": "channel_join"}, {"no": "type"}):
        live.slack.delivery.offer("events_api", live.slack.workspace.event(inner))
    await live.heard_all()
    assert live.inbox.calls == 0
    assert live.slack.delivery.given_up == []


@pytest.mark.parametrize("actions", [None, "x", 7, {}, [None], ["x"], [[]]])
async def test_a_press_that_cannot_be_read_neither_ends_the_channel_nor_comes_again(
    live: Running, actions: object
) -> None:
    ann = live.slack.person("ann")
    place = live.slack.private_chat(ann)
    known = {"type": "block_actions", "api_app_id": APP, "team": {"id": TEAM}, "user": {"id": ann.id}}
    broken = {**known, "actions": actions}
    live.slack.delivery.offer("interactive", broken)
    await live.slack.say(place, ann, "still there?")
    await live.until(lambda: live.inbox.texts() == ["still there?"])
    await live.until(lambda: live.slack.unacknowledged() == 0)
    assert live.slack.delivery.given_up == []
