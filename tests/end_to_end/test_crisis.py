"""The crisis gate in front of every agent: its response takes the agent's place, and is recorded.

Covers: pipeline/crisis_check.py, pipeline/safety/crisis_gate.py, gateway/safety/crisis_records.py,
gateway/app/safety.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

from gateway.app import safety
from gateway.runtime.data_dir import STORE_FILE
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.safety.assessment import CrisisAssessment
from pipeline.safety.crisis_gate import CrisisGate
from pipeline.safety.replies import STATIC_REPLY
from pipeline.safety.resources import shipped_resources
from tests.pipeline.nodes.documents import edge, node, steps
from tests.support.false_alarms import KNOWN_FALSE_ALARMS
from tests.support.harness import open_gateway
from tests.support.two_channels import TwoChannels, open_two_channels
from voice.transcription.scripted_transcriber import ScriptedTranscriber

ENGLISH = "Thank you for telling me."
AGAIN = "I am still here"
GERMAN = "Danke, dass du mir das sagst."


def _folder(parent: Path, name: str) -> Path:
    (parent / name).mkdir()
    return parent / name


async def _records(place: TwoChannels) -> list[tuple[int, str, str]]:
    found = await place.harness.store.crises.listed(limit=50)
    return [(one.level, one.path, one.reason) for one in reversed(found)]


async def test_the_response_takes_the_agents_place_and_ordinary_messages_reach_it(tmp_path: Path) -> None:
    async with open_two_channels(tmp_path) as place:
        for chat in place.chats:
            assert (await chat.ask("I want to kill myself")).startswith(ENGLISH)
        assert place.harness.llm.requests == [], "no model is called"
        for chat in place.chats:
            answer = await chat.ask("I am in Germany")
            assert answer.startswith(AGAIN)
            assert "116 123" in answer
            assert "Samaritans" not in answer
            assert await chat.ask("yes, I'm safe") == "You said: yes, I'm safe"
            await chat.ask("/new")
            assert await chat.ask("this homework is killing me") == "You said: this homework is killing me"
        codes = [reason for _, _, reason in await _records(place)]
        assert codes == ["en.act", "en.act", "en.act earlier", "en.act earlier"]
        stored = json.dumps([str(one) for one in await place.harness.store.crises.listed(limit=50)])
        assert "kill" not in stored, "no record holds words of a person"


@pytest.mark.parametrize(
    ("danger", "thanks", "accepted"),
    [
        ("I want to kill myself", "thank you, I will call them", "I am glad. Please call now"),
        ("Ich will sterben", "Danke, ich rufe dort an", "Das ist gut. Bitte ruf jetzt an"),
        ("Je veux mourir", "merci, je vais les appeler", "C'est bien. Appelle maintenant"),
        ("Quiero morir", "gracias, voy a llamar", "Me alegro. Llama ahora"),
    ],
)
async def test_a_person_who_accepts_help_gets_shorter_words_and_the_same_record(
    tmp_path: Path, danger: str, thanks: str, accepted: str
) -> None:
    async with open_two_channels(tmp_path) as place:
        await place.page.ask(danger)
        answer = await place.page.ask(thanks)
        assert answer.startswith(accepted)
        assert "findahelpline" in answer
        again = await place.page.ask(f"{thanks}, but {danger}")
        assert not again.startswith(accepted), "what is new counts first"
        first, second, third = await _records(place)
        assert (first[0], second[0]) == (2, 2)
        assert third[0] >= 2
        assert second[2] == f"{first[2]} earlier"


async def test_a_voice_note_is_judged_whatever_its_confidence(tmp_path: Path) -> None:
    transcriber = ScriptedTranscriber(["ich bringe mich heute um"] * 2, confidence=0.1)
    async with open_two_channels(tmp_path, transcriber=transcriber) as place:
        for chat in place.chats:
            answer = await chat.speak()
            assert GERMAN in answer
            assert "Bitte ruf jetzt den Notruf" in answer
        assert place.harness.llm.requests == []
        assert [level for level, _, _ in await _records(place)] == [3, 3]


async def test_no_budget_no_limit_and_no_question_comes_first(tmp_path: Path) -> None:
    asks = steps(
        node("ask", "question", prompt="Who?"), node("say", "reply", text="ok"), edges=[edge("ask", "say")]
    )
    path = tmp_path / "asks.json"
    path.write_text(json.dumps(asks), "utf-8")
    llm = ScriptedLlm([ScriptedAnswer(chunks=("Dear.",), prompt_tokens=1_000)])
    transcriber = ScriptedTranscriber(["I want to die"])
    async with open_two_channels(
        tmp_path, "budget.person_tokens=900", llm=llm, transcriber=transcriber
    ) as place:
        await place.page.ask("hello")
        assert (await place.page.ask("I want to die")).startswith(ENGLISH)
        await place.page.ask("/new")
        assert ENGLISH in await place.page.speak()
    limits = (f'agent.graph="{path}"', "limits.messages_per_minute=2")
    async with open_two_channels(_folder(tmp_path, "asked"), *limits) as place:
        for chat in place.chats:
            await chat.ask("hello")
            # Telegram takes typed words as the answer to the open question; they are judged first.
            assert (await chat.ask("I want to die")).startswith(ENGLISH)
            assert (await chat.ask("I'm going to kill myself tonight")).startswith(ENGLISH)


@pytest.mark.parametrize("command", ["/history I want to die", "/nothing I want to die"])
async def test_the_words_of_a_command_are_judged(tmp_path: Path, command: str) -> None:
    async with open_two_channels(tmp_path) as place:
        for chat in place.chats:
            assert (await chat.ask(command)).startswith(ENGLISH)


async def test_an_agent_that_the_configuration_exempts_answers(tmp_path: Path) -> None:
    async with open_two_channels(tmp_path, 'safety.gate="off"') as place:
        for chat in place.chats:
            assert await chat.ask("I want to die") == "You said: I want to die"
        assert await _records(place) == []
    more = ('agents.poet.crisis_gate="off"', 'agents.poet.description="verse"')
    async with open_two_channels(_folder(tmp_path, "more"), *more) as place:
        assert (await place.page.ask("I want to die")).startswith(ENGLISH), "the others are not exempt"


async def test_off_the_record_only_the_crisis_record_is_kept(tmp_path: Path) -> None:
    async with open_two_channels(tmp_path) as place:
        await place.page.ask("/otr")
        assert (await place.page.ask("I want to die")).startswith(ENGLISH)
        (record,) = await place.harness.store.crises.listed(limit=9)
        assert record.user is None
        await place.page.ask("/new")
        await place.page.ask("I want to die")
        newest, _ = await place.harness.store.crises.listed(limit=9)
        assert newest.user is not None
        assert newest.session != record.session


async def test_a_gate_that_fails_never_passes_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_text: str, _history: object) -> CrisisAssessment:
        raise RuntimeError("I want to die")

    monkeypatch.setattr(
        safety, "build_crisis_gate", lambda *_settings: CrisisGate(shipped_resources(), assess=fails)
    )
    async with open_two_channels(tmp_path) as place:
        for chat in place.chats:
            assert (await chat.ask("hello"))[:40] == STATIC_REPLY[:40]
        assert place.harness.llm.requests == []
        assert await _records(place) == [(2, "failed", "gate_failed")] * 2


async def test_the_operator_names_the_country_and_the_numbers(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        'as_of = "2026-01-01"\n[[country]]\ncode = "DE"\nname = "Deutschland"\nemergency = "112"\n'
        'lines = ["Our line: 030 123"]\n',
        "utf-8",
    )
    async with open_two_channels(tmp_path, 'safety.country="de"', f'safety.resources="{own}"') as place:
        answer = await place.page.ask("ich will sterben")
        assert answer.startswith(GERMAN)
        assert "Our line: 030 123" in answer


@pytest.mark.parametrize("text", KNOWN_FALSE_ALARMS)
async def test_what_rules_of_this_kind_take_for_danger_reaches_the_agent(tmp_path: Path, text: str) -> None:
    async with open_gateway(tmp_path) as harness:
        curly = text.replace("'", "\u2019")
        for one in dict.fromkeys((text, curly)):
            said = await harness.channel.say(one)
            assert (await harness.channel.reply(said.message_id)).text == f"You said: {one}"
        assert await harness.store.crises.listed(limit=9) == ()


async def test_what_rules_of_this_kind_miss_gets_the_response(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        for text in (
            "I don\u2019t want to be here anymore",
            "i wanna die",
            "killing myself is all I think about",
            "k m s",
            "quiero morir",
            "\u6211\u60f3\u6b7b",
            "i want to k1ll mys3lf",
            "i saved up all my pills and tonight i will take them and never wake up",
        ):
            said = await harness.channel.say(text)
            assert "112" in (await harness.channel.reply(said.message_id)).text, text
            await harness.channel.reply((await harness.channel.say("/new")).message_id)


async def test_a_record_that_cannot_be_made_or_written_takes_no_response_from_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_gateway(tmp_path) as harness:
        said = await harness.channel.say("hello")
        await harness.channel.reply(said.message_id)
        await _drop_the_table(tmp_path)
        said = await harness.channel.say("I want to die")
        assert (await harness.channel.reply(said.message_id)).text.startswith(ENGLISH)
        assert "a crisis response has no record" in caplog.text
        assert "I want to die" not in caplog.text
    monkeypatch.setattr("gateway.safety.crisis_records.identity_key", None)
    (tmp_path / "second").mkdir()
    async with open_gateway(tmp_path / "second") as harness:
        said = await harness.channel.say("I want to die")
        assert (await harness.channel.reply(said.message_id)).text.startswith(ENGLISH)
        assert await harness.store.crises.listed(limit=9) == ()


async def _drop_the_table(data: Path) -> None:
    """Spoil the records' table beside the gateway, as a fault of the disk may."""

    def drop() -> None:
        with contextlib.closing(sqlite3.connect(data / STORE_FILE)) as db, db:
            db.execute("DROP TABLE crises")

    await asyncio.to_thread(drop)
