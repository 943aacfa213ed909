"""A gate sees every accepted message first, on each channel: before commands, limits, budgets and questions.

Covers: pipeline/message_gate.py, pipeline/gate_check.py, pipeline/runtime/before_message.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from gateway.turns.sessions import load_session
from pipeline.domain.chat import ToolCall
from pipeline.domain.errors import ModelUnavailable
from pipeline.domain.ids import ThreadKey
from pipeline.llm.client import LlmItem, LlmRequest, TextDelta
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.pipeline.nodes.documents import edge, node, steps
from tests.support.platforms.telegram import FakeTelegram
from tests.support.two_channels import Chat, TwoChannels, open_two_channels
from voice.transcription.scripted_transcriber import ScriptedTranscriber

HELP = "Please call 112."
NOT_CHECKED = "I could not check this message, so I have not answered it. Please send it again."


def _gate(condition: str = "'danger' in message") -> dict[str, Any]:
    return steps(
        node("check", "condition", **{"if": condition, "then": "help"}), node("help", "reply", text=HELP)
    )


ASKS = steps(
    node("ask", "question", prompt="Which?", options=["danger", "tea"]),
    node("say", "reply", text="You chose {answers.ask.choice}."),
    edges=[edge("ask", "say")],
)


def _setting(folder: Path, key: str, document: dict[str, Any]) -> str:
    path = folder / f"{key}.json"
    path.write_text(json.dumps(document), "utf-8")
    return f'agent.{key}="{path}"'


def _ends(place: TwoChannels, words: str) -> tuple[int, int]:
    """How often the words are shown: as terminal events on the page, and as messages on Telegram."""
    return len(place.page.terminals(words)), place.telegram.lines.count(words)


async def test_a_message_is_taken_over_or_passed(tmp_path: Path) -> None:
    async with open_two_channels(tmp_path, _setting(tmp_path, "gate", _gate())) as place:
        for chat in place.chats:
            assert await chat.ask("I am in danger") == HELP
        assert place.harness.llm.requests == []
        for chat in place.chats:
            assert await chat.ask("hello") == "You said: hello"
        assert _ends(place, HELP) == (1, 1)
        seen = [[one.content for one in request.messages[1:]] for request in place.harness.llm.requests]
    assert seen == [["I am in danger", HELP, "hello"]] * 2, "a reply of the gate is a part of what was said"


@pytest.mark.parametrize("command", ["/danger", "/danger now", "/agent danger", "/stop danger"])
async def test_a_command_is_checked_with_its_words(tmp_path: Path, command: str) -> None:
    async with open_two_channels(tmp_path, _setting(tmp_path, "gate", _gate())) as place:
        for chat in place.chats:
            assert await chat.ask(command) == HELP
        assert _ends(place, HELP) == (1, 1)


async def test_commands_that_are_passed_do_what_they_do(tmp_path: Path) -> None:
    async with open_two_channels(tmp_path, _setting(tmp_path, "gate", _gate())) as place:
        for chat in place.chats:
            assert (await chat.ask("/help")).startswith("Send a message or a voice note")
            assert await chat.ask("/nothing") == (
                "There is no command /nothing here. /help shows those that there are."
                if chat.name == "telegram"
                else "There is no command `/nothing` here. `/help` shows those that there are."
            )
            assert "New conversation" in await chat.ask("/new")
        words = [record.kind for record in await place.harness.store.read_log(_thread(place))]
    assert words.count("user") == 1, "of the commands only the unknown one is a message"


def _thread(place: TwoChannels) -> str:
    person = place.telegram.person.id
    return ThreadKey(channel="telegram", account="main", chat=person).encode()


async def test_a_gate_can_take_over_every_command_but_stop(tmp_path: Path) -> None:
    gate = _setting(tmp_path, "gate", _gate("kind == 'command'"))
    async with open_two_channels(tmp_path, gate) as place:
        for chat in place.chats:
            for command in ("/help", "/otr"):
                assert await chat.ask(command) == HELP
            assert await chat.ask("/stop") == "There is nothing to stop."
            assert await chat.ask("hello") == "You said: hello"


async def test_a_code_that_links_chats_is_shown_to_no_gate(tmp_path: Path) -> None:
    gate = _setting(tmp_path, "gate", _gate("'ACDE' in message or message == '/link'"))
    async with open_two_channels(tmp_path, gate) as place:
        for chat in place.chats:
            assert await chat.ask("/link ACDE-FHJK") == HELP
        log = await place.harness.store.read_log(_thread(place), kinds=("user",))
    assert [record.body["text"] for record in log] == ["/link"]


async def test_a_used_up_budget_does_not_come_first(tmp_path: Path) -> None:
    gate = _setting(tmp_path, "gate", _gate())
    llm = ScriptedLlm([ScriptedAnswer(chunks=("Dear.",), prompt_tokens=1_000) for _ in range(2)])
    async with open_two_channels(tmp_path, gate, "budget.person_tokens=900", llm=llm) as place:
        for chat in place.chats:
            assert await chat.ask("hello") == "Dear."
            assert await chat.ask("danger") == HELP
            assert "begins again at midnight" in await chat.ask("hello again")
        assert len(llm.requests) == 2


async def test_a_used_up_budget_does_not_come_before_what_was_spoken(tmp_path: Path) -> None:
    gate = _setting(tmp_path, "gate", _gate())
    llm = ScriptedLlm([ScriptedAnswer(chunks=("Dear.",), prompt_tokens=1_000) for _ in range(2)])
    transcriber = ScriptedTranscriber(["danger", "tea", "danger", "tea"])
    budget = "budget.person_tokens=900"
    async with open_two_channels(tmp_path, gate, budget, llm=llm, transcriber=transcriber) as place:
        for chat in place.chats:
            assert await chat.ask("hello") == "Dear."
            assert (await chat.speak()).endswith(HELP)
            assert "begins again at midnight" in await chat.speak()


async def test_the_quota_does_not_come_first(tmp_path: Path) -> None:
    gate = _setting(tmp_path, "gate", _gate())
    async with open_two_channels(tmp_path, gate, "limits.messages_per_minute=2") as place:
        for chat in place.chats:
            assert await chat.ask("one") == "You said: one"
            assert await chat.ask("two") == "You said: two"
            assert await chat.ask("danger") == HELP
            assert (await chat.ask("three")).startswith("Please slow down")
        assert len(place.harness.llm.requests) == 4
        entries = len(await place.harness.store.open_entries(_thread(place)))
    assert entries == 0


async def test_messages_far_beyond_the_quota_are_not_accepted(tmp_path: Path) -> None:
    gate = _setting(tmp_path, "gate", _gate())
    async with open_two_channels(tmp_path, gate, "limits.messages_per_minute=1") as place:
        ann = place.telegram
        assert await ann.ask("one") == "You said: one"
        assert await ann.ask("danger") == HELP
        assert (await ann.ask("danger")).startswith("Please slow down")
        seen = await place.harness.store.read_log(_thread(place), kinds=("user",))
    assert len(seen) == 2


async def test_a_typed_answer_is_checked_and_the_question_stays_open(tmp_path: Path) -> None:
    settings = (_setting(tmp_path, "gate", _gate()), _setting(tmp_path, "graph", ASKS))
    async with open_two_channels(tmp_path, *settings) as place:
        ann = place.telegram
        assert (await ann.ask("hello")).startswith("Which?")
        assert await ann.ask("danger") == HELP
        assert await ann.ask("tea") == "You chose tea."
        assert ann.lines.count("You chose tea.") == 1


async def test_a_spoken_answer_is_checked_and_the_question_stays_open(tmp_path: Path) -> None:
    settings = (_setting(tmp_path, "gate", _gate()), _setting(tmp_path, "graph", ASKS))
    transcriber = ScriptedTranscriber(["danger", "tea", "danger", "tea"])
    async with open_two_channels(tmp_path, *settings, transcriber=transcriber) as place:
        for chat in place.chats:
            assert (await chat.ask("hello")).startswith("Which?")
            assert (await chat.speak()).endswith(HELP)
            assert await chat.speak() == "You chose tea."


async def test_a_pressed_button_has_no_words_to_check(tmp_path: Path) -> None:
    settings = (_setting(tmp_path, "gate", _gate()), _setting(tmp_path, "graph", ASKS))
    async with open_two_channels(tmp_path, *settings) as place:
        for chat in place.chats:
            assert (await chat.ask("hello")).startswith("Which?")
            assert await chat.press("danger") == "You chose danger."


def _writing(*after: str) -> ScriptedLlm:
    """A model that asks to write a file, which a person has to allow."""
    load = ToolCall(id="l", name="load_tools", arguments='{"groups": ["files"]}')
    write = ToolCall(id="w", name="write_file", arguments='{"path": "a.txt", "text": "hello"}')
    answers = [ScriptedAnswer.of(words) for words in after]
    return ScriptedLlm([ScriptedAnswer.calling(load), ScriptedAnswer.calling(write), *answers])


async def test_an_answer_that_a_running_turn_waits_for_counts_at_once_if_it_is_passed(tmp_path: Path) -> None:
    gate = _setting(tmp_path, "gate", _gate())
    async with open_two_channels(tmp_path, gate, llm=_writing("Written.")) as place:
        await place.telegram.begin("write it")
        assert await place.telegram.ask("allow") == "Written."


async def test_an_answer_that_a_running_turn_waits_for_does_not_count_unless_it_is_passed(
    tmp_path: Path,
) -> None:
    gate = _setting(tmp_path, "gate", _gate("message == 'allow'"))
    async with open_two_channels(tmp_path, gate, llm=_writing("Not written.")) as place:
        ann = place.telegram
        await ann.begin("write it")
        await ann.send("allow")
        assert await ann.press("Deny") == "Not written."
        await ann.until_shown(HELP)
        assert list((tmp_path / "data").glob("workspace/people/*/files/*")) == []


async def test_an_answer_that_a_running_turn_waits_for_does_not_count_if_the_gate_fails(
    tmp_path: Path,
) -> None:
    gate = _setting(tmp_path, "gate", _gate("kind == 'text' and message != 'write it' and message > 3"))
    async with open_two_channels(tmp_path, gate, llm=_writing("Not written.")) as place:
        ann = place.telegram
        await ann.begin("write it")
        await ann.send("allow")
        assert await ann.press("Deny") == "Not written."
        await ann.until_shown(NOT_CHECKED)


class _Hanging(ScriptedLlm):
    """Never ends its answer."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def stream(self, _request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
        self.asked.set()
        await asyncio.Event().wait()
        yield TextDelta(text="")


async def test_a_gate_that_a_restart_cuts_off_checks_again_and_replies_once(tmp_path: Path) -> None:
    gate = _setting(tmp_path, "gate", _asks_model())
    hanging = _Hanging()
    async with FakeTelegram() as telegram:
        async with open_two_channels(tmp_path, gate, llm=hanging, telegram=telegram, drain_s=0) as place:
            await place.telegram.send("danger")
            await hanging.asked.wait()
        llm = ScriptedLlm([ScriptedAnswer.of('{"safe": false}')])
        async with open_two_channels(tmp_path, gate, llm=llm, telegram=telegram) as place:
            await place.telegram.until_shown(HELP)
            assert place.telegram.lines == [HELP]
            words = await place.harness.store.read_log(_thread(place), kinds=("user", "assistant"))
    assert [record.kind for record in words] == ["user", "assistant"]


async def test_a_stop_ends_the_check_and_the_message_is_not_passed(tmp_path: Path) -> None:
    gate = _setting(tmp_path, "gate", _asks_model())
    hanging = _Hanging()
    async with open_two_channels(tmp_path, gate, llm=hanging) as place:
        await place.telegram.send("/help")
        await hanging.asked.wait()
        await place.telegram.send("/stop")
        await place.telegram.until_shown("Stopped.")
        await place.telegram.until_shown("Stopped 1 message.")
        assert not any(line.startswith("Send a message") for line in place.telegram.lines)


def _asks_model(**after: Any) -> dict[str, Any]:
    """A gate that asks a model, and continues also when it fails."""
    ask = node("ask", "model", prompt="Is it safe? {message}", outputs={"safe": {"type": "boolean"}})
    check = node("check", "condition", **{"if": "safe == false", "then": "help"})
    return steps(ask, check, node("help", "reply", text=HELP), edges=[edge("ask", "check", **after)])


async def _ask_all(chat: Chat) -> list[str]:
    return [await chat.ask(text) for text in ("hello", "/help", "/nothing")]


async def test_a_gate_that_fails_passes_nothing(tmp_path: Path) -> None:
    gate = _setting(tmp_path, "gate", _asks_model())
    llm = ScriptedLlm([ScriptedAnswer(error=ModelUnavailable("down")) for _ in range(6)])
    async with open_two_channels(tmp_path, gate, llm=llm) as place:
        for chat in place.chats:
            assert await _ask_all(chat) == [NOT_CHECKED] * 3
            assert await chat.ask("/stop") == "There is nothing to stop."
        assert _ends(place, NOT_CHECKED) == (3, 3)
    assert all("Is it safe?" in request.messages[-1].content for request in llm.requests)


@pytest.mark.parametrize(
    "document",
    [
        _gate("message > 3"),
        steps(
            node("ask", "judge", keys=["message"], criteria="It is safe."),
            node("go", "delay", seconds=0.001),
            edges=[edge("ask", "go", when="on_success")],
        ),
        steps(
            node("ask", "delay", seconds=0.001),
            node("help", "reply", text=HELP),
            node("pass", "delay", seconds=0.001),
            edges=[
                edge("ask", "help", when={"llm_decide": "it is dangerous"}),
                edge("ask", "pass", when={"llm_decide": "it is safe"}, fallback=True),
            ],
        ),
    ],
    ids=["a condition that cannot be evaluated", "a judge that says nothing", "a choice that is none"],
)
async def test_a_check_that_could_not_be_made_is_not_passed(tmp_path: Path, document: dict[str, Any]) -> None:
    llm = ScriptedLlm([ScriptedAnswer.of("?") for _ in range(4)])
    async with open_two_channels(tmp_path, _setting(tmp_path, "gate", document), llm=llm) as place:
        assert await place.page.ask("hello") == NOT_CHECKED


async def test_a_gate_may_say_itself_what_happens_where_a_step_fails(tmp_path: Path) -> None:
    document = _asks_model(when="on_success")
    document["edges"].append(edge("ask", "help", when="on_failure"))
    llm = ScriptedLlm([ScriptedAnswer(error=ModelUnavailable("down")), ScriptedAnswer.of('{"safe": true}')])
    async with open_two_channels(tmp_path, _setting(tmp_path, "gate", document), llm=llm) as place:
        assert await place.page.ask("hello") == HELP
        assert await place.page.ask("/nothing") != HELP


async def test_each_agent_has_the_gate_of_its_table(tmp_path: Path) -> None:
    gate = _setting(tmp_path, "gate", _gate())
    routes = ('agents.open.gate=""', 'routes.1.agent="open"', 'routes.1.channel="telegram"')
    async with open_two_channels(tmp_path, gate, *routes) as place:
        assert await place.page.ask("danger") == HELP
        assert await place.telegram.ask("danger") == "You said: danger"
        assert (await place.telegram.ask("/danger")).startswith("There is no command")


async def test_words_that_were_not_checked_do_not_reach_the_model_later(tmp_path: Path) -> None:
    bad = node(
        "bad", "condition", **{"if": "'bad' in message and message > 3", "then": "help", "else": "slow"}
    )
    slow = node("slow", "condition", **{"if": "'slow' in message", "then": "wait"})
    wait = node("wait", "delay", seconds=600)
    gate = _setting(tmp_path, "gate", steps(bad, slow, wait, node("help", "reply", text=HELP)))
    async with open_two_channels(tmp_path, gate) as place:
        ann = place.telegram
        assert await ann.ask("bad words") == NOT_CHECKED
        await ann.send("slow words")
        await ann.send("/stop")
        await ann.until_shown("Stopped.")
        await ann.until_shown("Stopped 1 message.")
        assert await ann.ask("hello") == "You said: hello"
        (request,) = place.harness.llm.requests
    async with open_two_channels(tmp_path, gate) as place:
        thread = _thread(place)
        session = await load_session(place.harness.store, thread)
        kept = [message.content for message in (await session.read()).messages]
    assert [message.content for message in request.messages[1:]] == ["hello"]
    assert kept == ["hello", "You said: hello"]
