"""The lossy queue drops only what may be dropped; live answers add up to what a reader would have."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from adapters.identity import derived_message_id
from adapters.streaming import LiveAnswers, LossyEventQueue
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import ApprovalRequired, ApprovalResolved, ErrorEvent, LlmToken, TurnStarted
from pipeline.domain.ids import ThreadKey

THREAD = ThreadKey(channel="web", account="local", chat="c_1")
OTHER = ThreadKey(channel="web", account="local", chat="c_2")
QUESTION = ApprovalRequired(
    session_id="s",
    message_id="m_1",
    interaction_id="i",
    tool_name="t",
    reasoning="r",
    options=("allow",),
    timeout_s=300.0,
)


def _token(text: str, offset: int, message_id: str = "m_1") -> LlmToken:
    return LlmToken(session_id="s", message_id=message_id, text=text, offset=offset)


async def _rest(queue: LossyEventQueue[int]) -> list[int]:
    queue.close()
    return [item async for item in queue]


async def test_a_full_queue_drops_its_oldest_droppable_item() -> None:
    queue: LossyEventQueue[int] = LossyEventQueue(soft_limit=3, hard_limit=10)
    queue.put(1)
    for item in (2, 3, 4):
        assert queue.put(item, droppable=True)
    queue.put(5)
    assert queue.dropped == 2
    assert await _rest(queue) == [1, 4, 5]


async def test_a_queue_full_of_what_must_stay_drops_the_new_droppable_item() -> None:
    queue: LossyEventQueue[int] = LossyEventQueue(soft_limit=2, hard_limit=10)
    for item in (1, 2, 3):
        queue.put(item)
    assert queue.put(4, droppable=True)
    assert (queue.dropped, await _rest(queue)) == (1, [1, 2, 3])


async def test_beyond_the_hard_limit_the_reader_is_too_slow_and_the_queue_ends() -> None:
    queue: LossyEventQueue[int] = LossyEventQueue(soft_limit=1, hard_limit=3)
    assert [queue.put(item) for item in range(4)] == [True, True, True, False]
    assert queue.too_slow
    assert queue.closed
    assert not queue.put(5)
    assert await _rest(queue) == []


async def test_a_waiting_reader_gets_items_as_they_come_and_the_end() -> None:
    queue: LossyEventQueue[int] = LossyEventQueue()
    got: list[int] = []

    async def read() -> None:
        got.extend([item async for item in queue])

    async with asyncio.TaskGroup() as group:
        group.create_task(read())
        for item in range(3):
            queue.put(item, droppable=item == 1)
            await asyncio.sleep(0)
        queue.close()
    assert got == [0, 1, 2]


async def test_taking_all_empties_the_queue_and_leaves_it_usable() -> None:
    queue: LossyEventQueue[int] = LossyEventQueue(soft_limit=2, hard_limit=4)
    queue.put(1, droppable=True)
    queue.put(2)
    assert queue.take_all() == (1, 2)
    assert len(queue) == 0
    for item in (3, 4, 5):
        queue.put(item, droppable=True)
    assert await _rest(queue) == [4, 5]


@given(
    steps=st.lists(st.sampled_from(["keep", "drop", "read"]), max_size=80),
    soft=st.integers(min_value=1, max_value=6),
)
def test_order_holds_and_nothing_that_must_stay_is_lost(steps: list[str], soft: int) -> None:
    async def check() -> None:
        queue: LossyEventQueue[int] = LossyEventQueue(soft_limit=soft, hard_limit=1000)
        reader = aiter(queue)
        kept, got = [], []
        for number, step in enumerate(steps):
            if step == "read" and len(queue):
                got.append(await anext(reader))
            elif step != "read":
                queue.put(number, droppable=step == "drop")
                kept += [number] if step == "keep" else []
        queue.close()
        got += [item async for item in reader]
        assert got == sorted(got)
        assert [item for item in got if steps[item] == "keep"] == kept
        assert queue.dropped == steps.count("drop") - sum(steps[item] == "drop" for item in got)

    asyncio.run(check())


def test_live_answers_add_up_per_thread_and_message_and_end_with_the_outcome() -> None:
    answers = LiveAnswers(ManualClock())
    answers.observe(THREAD, TurnStarted(session_id="s", message_id="m_0"))
    answers.observe(THREAD, _token("ab", 0))
    answers.observe(OTHER, _token("zz", 0))
    answers.observe(THREAD, _token("cd", 2))
    assert [(answer.message_id, answer.text) for answer in answers.answers(THREAD)] == [
        ("m_0", ""),
        ("m_1", "abcd"),
    ]
    answers.observe(
        THREAD, ErrorEvent(session_id="s", message_id="m_1", code="x", message="y", recoverable=True)
    )
    assert [answer.message_id for answer in answers.answers(THREAD)] == ["m_0"]
    assert [answer.text for answer in answers.answers(OTHER)] == ["zz"]


def test_an_answer_that_starts_again_replaces_what_was_there() -> None:
    answers = LiveAnswers(ManualClock())
    for event in (_token("abcdef", 0), _token("AB", 0), _token("C", 2), _token("lost", 9)):
        answers.observe(THREAD, event)
    assert answers.answers(THREAD)[0].text == "ABC"


def test_live_answers_are_bounded_in_number_and_length() -> None:
    answers = LiveAnswers(ManualClock(), max_answers=2, max_chars=5)
    for number in range(3):
        answers.observe(THREAD, _token("abc", 0, f"m_{number}"))
        answers.observe(THREAD, _token("defg", 3, f"m_{number}"))
        answers.observe(THREAD, _token("h", 7, f"m_{number}"))
    assert [(answer.message_id, answer.text) for answer in answers.answers(THREAD)] == [
        ("m_1", "abcde"),
        ("m_2", "abcde"),
    ]


def test_a_question_is_kept_with_what_came_of_it_until_its_turn_ends() -> None:
    answers = LiveAnswers(ManualClock())
    answers.observe(THREAD, QUESTION)
    assert answers.answers(THREAD)[0].approvals == (QUESTION,)
    resolved = ApprovalResolved(session_id="s", message_id="m_1", interaction_id="i", choice="allow")
    answers.observe(THREAD, resolved)
    answers.observe(THREAD, replace(QUESTION, interaction_id="j"))
    assert [one.interaction_id for one in answers.answers(THREAD)[0].approvals] == ["i", "i", "j"]
    assert answers.answers(THREAD)[0].approvals[1] == resolved


def test_a_question_that_outlives_its_turn_is_no_answer_in_progress() -> None:
    answers = LiveAnswers(ManualClock())
    answers.observe(THREAD, replace(QUESTION, paused=True))
    assert answers.answers(THREAD) == ()


async def test_a_question_that_is_shown_again_says_what_is_left_of_its_time() -> None:
    clock = ManualClock()
    answers = LiveAnswers(clock)
    answers.observe(THREAD, QUESTION)
    answers.observe(THREAD, replace(QUESTION, interaction_id="for_ever", timeout_s=0.0))
    await clock.advance(120)
    clock.step_wall(-10_000)
    first, second = answers.answers(THREAD)[0].approvals
    assert isinstance(first, ApprovalRequired)
    assert isinstance(second, ApprovalRequired)
    assert [first.timeout_s, second.timeout_s] == [180.0, 0.0]
    await clock.advance(181)
    assert [one.interaction_id for one in answers.answers(THREAD)[0].approvals] == ["for_ever"]


def test_message_ids_are_stable_and_depend_on_every_part() -> None:
    first = derived_message_id("web", "local", "c:1")
    assert first == derived_message_id("web", "local", "c:1")
    assert first.startswith("m_")
    assert len(first) == 22
    others = {
        derived_message_id("web", "local", "c:2"),
        derived_message_id("web", "localc", ":1"),
        derived_message_id("we", "blocal", "c:1"),
    }
    assert first not in others
    assert len(others) == 3
