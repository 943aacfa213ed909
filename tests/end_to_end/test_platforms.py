"""Telegram, Slack and Discord at once in one gateway: the real SDKs against fake platforms.

Covers: adapters/channel.py, gateway/app/platforms.py, pipeline/service.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.domain.chat import ChatMessage, ToolCall
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.all_platforms import open_all_platforms
from tests.support.platforms.platform import FakePlatform, Fault, Place, Shown
from tests.support.platforms.slack import FakeSlack
from voice.transcription.scripted_transcriber import ScriptedTranscriber

NOTE = b"OggS" + bytes(400)
_FINE = ScriptedAnswer(chunks=("I am.",))
MIME = {"telegram": "audio/ogg", "slack": "audio/mp4", "discord": "audio/ogg"}


async def test_a_message_on_each_platform_is_answered_there_and_nowhere_else(tmp_path: Path) -> None:
    async with open_all_platforms(tmp_path) as place:
        for platform, chat in place.private():
            await platform.say(chat, platform.person("ann"), f"hello from {platform.name}")
        for platform, chat in place.private():
            wanted = [f"You said: hello from {platform.name}"]
            await platform.until(lambda: platform.bot_texts(chat) == wanted)  # noqa: B023 - used before the next turn
        assert [status.up for status in place.harness.gateway.channel_statuses()] == [True] * 4


async def test_an_answer_with_more_marks_than_a_message_holds_is_shown_and_the_next_is_too(
    tmp_path: Path,
) -> None:
    hostile = "# " + "a*b*" * 60
    async with open_all_platforms(
        tmp_path, llm=ScriptedLlm([ScriptedAnswer(chunks=(hostile,))] * 3 + [_FINE] * 3)
    ) as place:
        for platform, chat in place.private():
            await platform.say(chat, platform.person("ann"), "repeat this")
            await platform.until(lambda: "".join(platform.bot_texts(chat)).count("a") == 60)  # noqa: B023 - as above
        for platform, chat in place.private():
            await platform.say(chat, platform.person("ann"), "are you there?")
            await platform.until(lambda: platform.bot_texts(chat)[-1] == "I am.")  # noqa: B023 - as above
        assert all(platform.bot_texts(chat)[-1] == "I am." for platform, chat in place.private())


async def test_a_voice_note_on_each_platform_is_heard_and_answered(tmp_path: Path) -> None:
    async with open_all_platforms(
        tmp_path, transcriber=ScriptedTranscriber.always("what time is it")
    ) as place:
        for platform, chat in place.private():
            await platform.speak(chat, platform.person("ann"), NOTE, mime=MIME[platform.name])
        for platform, chat in place.private():
            await platform.until(lambda: any("You said:" in text for text in platform.bot_texts(chat)))  # noqa: B023 - as above
            (answer,) = platform.bot_texts(chat)
            assert answer.count("what time is it") == 2, "once as what was heard, once as the answer"


async def test_a_slow_answer_is_seen_to_grow_on_each_platform(tmp_path: Path) -> None:
    words = "one two three four five six"
    async with open_all_platforms(
        tmp_path, llm=ScriptedLlm.from_spec("echo:delay=0.4"), limited=True
    ) as place:
        for platform, chat in place.private():
            await platform.say(chat, platform.person("ann"), words)
        for platform, chat in place.private():
            await platform.until(lambda: platform.bot_texts(chat) == [f"You said: {words}"])  # noqa: B023 - as above
            previews = [call for call in platform.calls if "You said: one" in str(call.payload)]
            assert len(previews) >= 2, f"{platform.name} showed the answer all at once"
            if isinstance(platform, FakeSlack):
                # A direct chat there has no typing sign: a reaction stays until the answer is there.
                methods = [call.method for call in platform.calls]
                assert methods.count("reactions.add") == 1
                await platform.until(lambda: not platform.workspace.reactions)  # noqa: B023 - as above


async def test_each_place_keeps_its_own_conversation(tmp_path: Path) -> None:
    llm = ScriptedLlm.echo()
    async with open_all_platforms(tmp_path, llm=llm) as place:
        for text in ("first", "second"):
            for platform, chat in place.private():
                await platform.say(chat, platform.person("ann"), f"{text} on {platform.name}")
                await platform.until(
                    lambda: f"You said: {text} on {platform.name}" in platform.bot_texts(chat)  # noqa: B023 - as above
                )
        for platform, _ in place.private():
            (asked,) = [
                request.messages
                for request in llm.requests
                if request.messages[-1].content == f"second on {platform.name}"
            ]
            spoken = [message for message in asked if message.role != "system"]
            assert spoken == [
                ChatMessage(role="user", content=f"first on {platform.name}"),
                ChatMessage(role="assistant", content=f"You said: first on {platform.name}"),
                ChatMessage(role="user", content=f"second on {platform.name}"),
            ]


async def test_in_a_room_the_bot_answers_anyone_who_speaks_to_it_and_no_one_else(tmp_path: Path) -> None:
    unread = [f"channels.{name}.room_messages=0" for name in ("telegram", "slack", "discord")]
    async with open_all_platforms(tmp_path, *unread) as place:
        for platform in place.platforms:
            ann, ben = platform.person("ann"), platform.person("ben")
            room = platform.room("lounge", ann, ben)
            await platform.say(room, ann, "just chatting", addressed=False)
            await platform.say(room, ben, "what is up?")
            await platform.until(
                lambda: any("You said: ben: what is up?" in text for text in _replies(platform, room.chat))  # noqa: B023 - as above
            )
            assert not any("just chatting" in text for text in _replies(platform, room.chat))


@pytest.mark.parametrize("command", ["/help", "/new"])
async def test_a_command_is_answered_on_each_platform(tmp_path: Path, command: str) -> None:
    words = {"/help": "Send a message or a voice note", "/new": "New conversation"}[command]
    async with open_all_platforms(tmp_path) as place:
        for platform, chat in place.private():
            await platform.say(chat, platform.person("ann"), command)
        for platform, chat in place.private():
            await platform.until(lambda: any(words in text for text in platform.bot_texts(chat)))  # noqa: B023 - as above
            assert "You said" not in "".join(platform.bot_texts(chat)), "the model was asked about a command"


async def test_off_the_record_each_platform_is_said_to_keep_its_own_copy(tmp_path: Path) -> None:
    async with open_all_platforms(tmp_path) as place:
        for platform, chat in place.private():
            await platform.say(chat, platform.person("ann"), "/otr")
        for platform, chat in place.private():
            await platform.until(lambda: any("off the record" in text for text in platform.bot_texts(chat)))  # noqa: B023 - as above
            (notice,) = platform.bot_texts(chat)
            assert f"{platform.name.capitalize()} keeps its own copy of this chat" in notice
            assert "page" not in notice


async def test_a_tool_is_seen_at_work_and_is_allowed_by_a_press_on_each_platform(tmp_path: Path) -> None:
    llm = ScriptedLlm()
    async with open_all_platforms(tmp_path, llm=llm) as place:
        for platform, chat in place.private():
            ann = platform.person("ann")
            llm.script += (
                _calling("load_tools", groups=["files"]),
                _calling("write_file", path=f"{platform.name}.txt", text="hello"),
                ScriptedAnswer.of(f"Written on {platform.name}."),
            )
            await platform.say(chat, ann, "write it down")
            await platform.until(lambda: _asked(platform, chat) is not None)  # noqa: B023 - used before the next turn
            await platform.until(lambda: _writes(platform))  # noqa: B023 - as above
            asked = _asked(platform, chat)
            assert asked is not None
            assert "hello" in asked.text
            await platform.press(chat, ann, asked.native_id, "Allow")
            words = f"Written on {platform.name}."
            await platform.until(lambda: words in platform.bot_texts(chat))  # noqa: B023 - as above
            assert not any("Writing the file" in text for text in platform.bot_texts(chat))
            if platform is place.slack:
                await platform.until(lambda: "Answered: Allow" in "".join(platform.bot_texts(chat)))  # noqa: B023 - as above
    assert _written(tmp_path) == {"telegram.txt", "slack.txt", "discord.txt"}


def _written(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("data/workspace/people/*/files/*.txt")}


def _calling(name: str, **arguments: object) -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id=name, name=name, arguments=json.dumps(arguments)))


def _writes(platform: FakePlatform) -> bool:
    """Whether anything said that a file is being written."""
    return any("Writing the file" in str(call.payload) for call in platform.calls)


def _asked(platform: FakePlatform, chat: Place) -> Shown | None:
    """The bot's message with the question's buttons."""
    return next((one for one in platform.visible(chat) if "Allow" in one.buttons), None)


def _replies(platform: FakePlatform, chat: str) -> list[str]:
    """The bot's words in the room, in whichever of its threads."""
    places = [Place(chat=chat, private=False)]
    topics = {str(call.payload.get("thread_ts")) for call in platform.calls if call.payload.get("thread_ts")}
    places += [Place(chat=chat, private=False, topic=topic) for topic in topics]
    return [text for place in places for text in platform.bot_texts(place)]


async def test_a_channel_that_is_set_to_be_quiet_shows_no_work_while_the_others_do(tmp_path: Path) -> None:
    llm = ScriptedLlm()
    async with open_all_platforms(tmp_path, 'channels.slack.show_work="quiet"', llm=llm) as place:
        for platform, chat in place.private():
            ann = platform.person("ann")
            llm.script += (
                _calling("load_tools", groups=["files"]),
                _calling("write_file", path=f"{platform.name}.txt", text="hello"),
                ScriptedAnswer.of(f"Not written on {platform.name}."),
            )
            await platform.say(chat, ann, "write it down")
            await platform.until(lambda: _asked(platform, chat) is not None)  # noqa: B023 - used before the next turn
            if platform is not place.slack:
                await platform.until(lambda: _writes(platform))  # noqa: B023 - as above
            asked = _asked(platform, chat)
            assert asked is not None
            await platform.press(chat, ann, asked.native_id, "Deny")
            words = f"Not written on {platform.name}."
            await platform.until(lambda: words in platform.bot_texts(chat))  # noqa: B023 - as above
        assert not _writes(place.slack)


async def test_a_workspace_that_forbids_the_look_up_shows_the_answer_all_the_same(tmp_path: Path) -> None:
    async with open_all_platforms(tmp_path) as place:
        slack = place.slack
        chat = slack.private_chat(slack.person("ann"))
        slack.faults.script.extend(
            [
                Fault(method="chat.postMessage", kind="error_before"),
                Fault(method="conversations.history", kind="forbid"),
            ]
        )
        await slack.say(chat, slack.person("ann"), "hello")
        await slack.until(lambda: slack.bot_texts(chat) != [])
        assert slack.bot_texts(chat) == ["(This may be a repeat.)\nYou said: hello"]
