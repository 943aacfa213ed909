"""What people do from a phone, on Telegram, Slack and Discord: real SDKs, fake platforms, one gateway."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path

from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import SystemClock
from pipeline.llm.direct_client import DirectClient
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.runtime.arrivals import MEANWHILE
from tests.end_to_end.test_web_search import FOUND
from tests.pipeline.tools.web_server import says, serving
from tests.support.all_platforms import AllPlatforms, open_all_platforms
from tests.support.burst_talk import waits_for_three
from tests.support.openai_server import FakeOpenAiServer
from tests.support.platform_acts import ask, bot_said, give, press
from tests.support.platforms.platform import FakePlatform, Place
from voice.transcription.scripted_transcriber import ScriptedTranscriber

OTHER = "scripted:echo"
MODELS = ('llm.model="openai/gpt-4o"', f'llm.choices=["{OTHER}"]')


async def _answer(platform: FakePlatform, chat: Place, name: str, argument: str, words: str) -> str:
    """The bot's first new message that contains `words`, once the command was given."""
    before = len(platform.bot_texts(chat))
    await give(platform, chat, name, argument)
    await platform.until(partial(bot_said, platform, chat, before, words))
    return next(one for one in platform.bot_texts(chat)[before:] if words in one)


def _files(platform: FakePlatform, chat: Place) -> list[tuple[str, bytes]]:
    return [(one.file_name, one.file) for one in platform.visible(chat) if one.file and not one.author]


async def _use_the_list_of_commands(platform: FakePlatform, chat: Place, llm: ScriptedLlm) -> None:
    apples, pears = (f"{fruit} on {platform.name}" for fruit in ("apples", "pears"))
    await ask(platform, chat, apples, f"You said: {apples}")
    await _answer(platform, chat, "retry", "", f"You said: {apples}")
    await ask(platform, chat, pears, f"You said: {pears}")
    await _answer(platform, chat, "undo", "", "no longer use your last message")
    found = await _answer(platform, chat, "history", "apples", "The newest of what I found:")
    assert apples in found
    assert pears not in found
    assert "tokens" in await _answer(platform, chat, "usage", "", "Today you have used")
    await _answer(platform, chat, "model", "", "Here you can choose between:")
    await press(platform, chat, OTHER)
    await platform.until(partial(bot_said, platform, chat, 0, "answers from now on in this conversation"))
    assert OTHER in await _answer(platform, chat, "status", "", "Model:")
    asked = len(llm.requests)
    await ask(platform, chat, "plums", "You said: plums")
    assert platform.name not in str([request.messages for request in llm.requests[asked:]])
    await _answer(platform, chat, "export", "", "Here are the conversations of this chat.")
    await platform.until(lambda: len(_files(platform, chat)) == 1)
    ((name, content),) = _files(platform, chat)
    # Slack finds a file again by a mark in its name.
    assert (name[:12], name[-3:]) == ("conversation", ".md")
    text = content.decode("utf-8")
    assert [text.count(words) for words in (apples, pears, "plums", "taken out")] == [4, 2, 2, 2]
    await _answer(platform, chat, "export", "jsonl", "Here are the conversations of this chat.")
    await platform.until(lambda: len(_files(platform, chat)) == 2)
    name, content = _files(platform, chat)[1]
    assert (name[:12], name[-6:]) == ("conversation", ".jsonl")
    assert json.loads(content.splitlines()[0])["text"] == apples


async def test_each_command_works_from_the_list_of_its_platform(tmp_path: Path) -> None:
    llm = ScriptedLlm.echo()
    async with open_all_platforms(tmp_path, *MODELS, llm=llm) as place:
        async with asyncio.TaskGroup() as group:
            for platform, chat in place.private():
                group.create_task(_use_the_list_of_commands(platform, chat, llm))
        async with asyncio.timeout(60):
            while [one for one in (tmp_path / "data" / "files").rglob("*") if one.is_file()]:
                await SystemClock().sleep(0.01)
        telegram = place.telegram.state.commands
        discord = {one["name"]: one for one in place.discord.rest.commands}
    french = {one["command"]: one["description"] for one in telegram["fr"]}
    assert set(telegram) == {"", "de", "fr", "es"}
    assert discord["undo"]["description_localizations"]["fr"] == french["undo"]
    assert french["undo"] != discord["undo"]["description"]


async def test_three_messages_in_a_row_get_one_answer_on_each_platform(tmp_path: Path) -> None:
    async with FakeOpenAiServer(brain=waits_for_three) as server:
        model = DirectClient(model="m", clock=SystemClock(), api_base=server.api_base)
        async with open_all_platforms(tmp_path, "turn.bursts=merge", "turn.burst_s=10", model=model) as place:
            for platform, chat in place.private():
                for word in ("red", "green", "blue"):
                    await platform.say(chat, platform.person("ann"), word)
            for platform, chat in place.private():
                await platform.until(partial(bot_said, platform, chat, 0, "You like red, green, blue."))
                assert len(platform.bot_texts(chat)) == 1
            counts = await place.harness.store.counts()
    assert (counts.inbox_open, counts.inbox_done) == (0, 9)


def _calls(name: str, **arguments: object) -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id=name, name=name, arguments=json.dumps(arguments)))


async def _accepted(place: AllPlatforms, entries: int) -> None:
    while (await place.harness.store.counts()).inbox_open < entries:
        await SystemClock().sleep(0.01)


async def test_a_message_during_a_web_search_reaches_the_model_on_each_platform(tmp_path: Path) -> None:
    llm = ScriptedLlm([])
    pages = {"/search": says(json.dumps(FOUND), content_type="application/json")}
    async with serving(pages) as site:
        search = ('tools.search.backend="searxng"', f'tools.search.url="http://127.0.0.1:{site.port}"')
        async with open_all_platforms(tmp_path, "turn.while_busy=steer", *search, llm=llm) as place:
            for platform, chat in place.private():
                gate = asyncio.Event()
                load = ToolCall(id="l", name="load_tools", arguments='{"groups": ["web"]}')
                llm.script += (
                    ScriptedAnswer(chunks=("Let me look.",), gate=gate, gate_at=1, calls=(load,)),
                    _calls("search_web", query="green tea"),
                    ScriptedAnswer.of("Two minutes, says [the page](https://tea.example/green)."),
                )
                ann, asked = platform.person("ann"), len(llm.requests)
                await platform.say(chat, ann, "how long does tea steep?")
                shows = partial(lambda one: any("Let me" in str(c.payload) for c in one.calls), platform)
                await platform.until(shows)
                await platform.say(chat, ann, "I mean green tea")
                await _accepted(place, 2)
                gate.set()
                await platform.until(partial(bot_said, platform, chat, 0, "Two minutes, says the page"))
                answers = [one for one in platform.bot_texts(chat) if "Two minutes" in one]
                assert len(answers) == 1
                assert "https://tea.example/green" not in answers[0]
                steered = [one.content for one in llm.requests[asked + 1].messages if one.role == "user"]
                assert steered[-1] == f"{MEANWHILE}\nI mean green tea"
                assert "Steep for two minutes." in llm.requests[asked + 2].messages[-1].content
            assert not llm.script


async def test_a_message_that_interrupts_ends_the_answer_on_each_platform(tmp_path: Path) -> None:
    llm = ScriptedLlm([])
    async with open_all_platforms(tmp_path, "turn.while_busy=interrupt", llm=llm) as place:
        for number, (platform, chat) in enumerate(place.private(), 1):
            held = ScriptedAnswer(chunks=("Rome is very ", "sunny."), gate=asyncio.Event(), gate_at=1)
            llm.script += (held, ScriptedAnswer.of("Paris is wet."))
            ann, asked = platform.person("ann"), len(llm.requests)
            await platform.say(chat, ann, "the weather in Rome")
            shows = partial(lambda one: any("Rome is" in str(c.payload) for c in one.calls), platform)
            await platform.until(shows)
            await platform.say(chat, ann, "I mean Paris")
            await platform.until(partial(bot_said, platform, chat, 0, "Paris is wet."))
            first, second = platform.bot_texts(chat)
            assert first.startswith("Rome is")
            assert "sunny" not in first
            assert second == "Paris is wet."
            words = [one.content for one in llm.requests[asked + 1].messages[1:]]
            assert (words[0], words[-1]) == ("the weather in Rome", "I mean Paris")
            assert llm.cancelled == number


async def test_a_long_voice_note_is_done_with_as_its_sender_presses_on_each_platform(tmp_path: Path) -> None:
    words = "We meet on Monday, and Ben brings the cake."
    llm, transcriber = ScriptedLlm.echo(), ScriptedTranscriber.always(words)
    async with open_all_platforms(
        tmp_path, "voice.choose_from_s=1", llm=llm, transcriber=transcriber
    ) as place:
        for number, (platform, chat) in enumerate(place.private(), 1):
            ann = platform.person("ann")
            sound = b"OggS" + platform.name.encode()
            await platform.speak(chat, ann, sound, mime="audio/ogg")
            await press(platform, chat, "Only the transcript")
            await platform.until(partial(bot_said, platform, chat, 0, "The transcript is above."))
            assert len(llm.requests) == number - 1
            assert bot_said(platform, chat, 0, words)
            await platform.speak(chat, ann, sound + b"again", mime="audio/ogg")
            await press(platform, chat, "Sum it up")
            await platform.until(partial(bot_said, platform, chat, 0, "You said: "))
            assert "Sum it up in a few" in str(llm.requests[-1].messages[0])
