"""Titles: when a conversation gets one, of what, and what becomes of bad answers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import pytest

from gateway.agents.agent_book import AgentModels
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Lease
from gateway.turns.past_turns import message_on_record, past_turn
from gateway.turns.sessions import SessionState, load_session, session_record, write_summary
from gateway.turns.titler import MAX_CHARS, Titles, title_of
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import ManualClock
from pipeline.domain.conversation import Summary
from pipeline.domain.errors import ModelError, ModelUnavailable
from pipeline.domain.ids import ThreadKey
from pipeline.domain.timeline import TimelineEntry
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.null_services import NullBudgets
from pipeline.runtime.ports import UserWords
from pipeline.runtime.scope import TurnScope
from tests.support.contexts import scope
from tests.support.held_store import HeldStore

THREAD = "console:local:c1"
_LONG = "Donaudampfschifffahrtsgesellschaft"
KEY = "ghp_" + "a1B2c3D4" * 5


def said(text: str) -> ChatMessage:
    return message_on_record(UserWords(text=text))


class TitlerHarness:
    """A store with one thread, and titles for it."""

    def __init__(self, llm: ScriptedLlm, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.shown: list[TimelineEntry] = []
        self.titles = Titles(
            store=self.store,
            models=lambda _agent: AgentModels(llm=llm, summarise_above=80, llm_timeout_s=60),
            budgets=NullBudgets(),
            clock=ManualClock(),
            redactor=Redactor(),
            on_titled=lambda _thread, entry: self.shown.append(entry),
        )

    async def open(self) -> tuple[Lease, TurnScope]:
        await self.store.open()
        lease = await self.store.acquire_lease(THREAD, "me", ttl_s=60, now=0)
        assert lease is not None
        await self.store.append(lease, [session_record("ses-1", "m", 0.0)])
        return lease, scope(session_id="ses-1", message_id="m", thread=ThreadKey.decode(THREAD))


def session(turns: int) -> SessionState:
    state = SessionState("ses-1", stored=True)
    for number in range(1, turns + 1):
        state.extend(past_turn(number, said(f"question {number} {KEY}"), (), f"answer {number}", 0.0))
    return state


def says(text: str) -> ScriptedLlm:
    return ScriptedLlm([ScriptedAnswer(chunks=(text,))])


async def test_the_third_exchange_earns_a_title_which_is_stored_and_shown_once() -> None:
    llm = says(f'Title: "The Great\u202e Parlour Tour {KEY} extra words here."')
    harness = TitlerHarness(llm)
    lease, turn = await harness.open()
    talk = session(3)
    assert not harness.titles.wanted(session(1))
    assert harness.titles.wanted(session(2))
    await harness.titles.run(lease, talk, turn)
    assert talk.title == "The Great Parlour Tour ghp_(REDACTED) extra"
    assert [(shown.role, shown.text) for shown in harness.shown] == [("title", talk.title)]
    assert not harness.titles.wanted(talk)
    assert (await load_session(harness.store, THREAD)).title == talk.title
    assert KEY not in llm.requests[0].messages[-1].content
    assert "question 3" in llm.requests[0].messages[-1].content


async def test_a_failure_is_raised_and_an_unusable_answer_leaves_the_title_wanted() -> None:
    harness = TitlerHarness(
        ScriptedLlm(
            [
                ScriptedAnswer(error=ModelUnavailable("gone")),
                ScriptedAnswer(chunks=("...",)),
                ScriptedAnswer(chunks=("Third",)),
            ]
        )
    )
    lease, turn = await harness.open()
    talk = session(3)
    with pytest.raises(ModelUnavailable):
        await harness.titles.run(lease, talk, turn)
    await harness.titles.run(lease, talk, turn)
    assert (talk.title, harness.titles.wanted(talk)) == ("", True)
    await harness.titles.run(lease, talk, turn)
    assert (talk.title, harness.titles.wanted(talk)) == ("Third", False)


async def test_a_title_that_takes_too_long_is_given_up() -> None:
    harness = TitlerHarness(ScriptedLlm([ScriptedAnswer(chunks=("late",), gate=asyncio.Event())]))
    lease, turn = await harness.open()
    talk = session(3)
    async with asyncio.TaskGroup() as group:
        naming = group.create_task(_ends_in_error(harness.titles.run(lease, talk, turn)))
        clock = harness.titles._clock
        assert isinstance(clock, ManualClock)
        await clock.advance(11)
    assert isinstance(naming.result(), ModelError)
    assert talk.title == ""


async def _ends_in_error(work: Coroutine[object, object, None]) -> Exception | None:
    try:
        await work
    except ModelError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("**Weather in Bern**\nand more", "Weather in Bern"),
        ("This conversation is about baking bread.", "baking bread"),
        ("\n\n  \n", ""),
        ('"..."', ""),
        ("one two three four five six seven", "one two three four five six"),
        (f"{_LONG} Kapitänsmützenabzeichensammlung", _LONG),
        ("x" * 100, "x" * MAX_CHARS),
        ("天気の話", "天気の話"),
    ],
)  # fmt: skip
def test_of_an_answer_only_a_short_line_is_a_title(said: str, title: str) -> None:
    assert title_of(said) == title


async def test_a_message_that_comes_while_a_title_is_written_makes_no_second_one() -> None:
    slow = HeldStore()
    harness = TitlerHarness(says("Great Tour"), slow)
    lease, turn = await harness.open()
    talk = session(3)
    slow.held = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        naming = group.create_task(harness.titles.run(lease, talk, turn))
        await slow.held.wait()
        naming.cancel()
    talk.extend(past_turn(4, said("question 4"), (), "answer 4", 0.0))
    assert (talk.title, harness.titles.wanted(talk)) == ("Great Tour", False)
    assert len(await harness.store.read_log(THREAD, kinds=("title",))) == 1


async def test_a_message_that_comes_while_a_summary_is_written_makes_no_second_one() -> None:
    slow = HeldStore()
    harness = TitlerHarness(ScriptedLlm.echo(), slow)
    lease, _turn = await harness.open()
    talk = session(3)
    slow.held = asyncio.Event()
    summary = Summary(text="They talked.", upto=2)
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(write_summary(slow, lease, talk, summary, at=0.0))
        await slow.held.wait()
        writing.cancel()
    assert talk.conversation.summary == summary
    assert not await write_summary(slow, lease, talk, summary, at=0.0)
    assert len(await slow.read_log(THREAD, kinds=("summary",))) == 1
