"""The bus: who gets a signal, in which order, and what is lost; on every implementation."""

from __future__ import annotations

import pytest

from gateway.cluster.bus import EVERY_OWNER
from gateway.cluster.signals import Control, Recorded
from pipeline.domain.events import PipelineEvent, ResponseComplete
from pipeline.domain.ids import ThreadKey
from tests.contracts.bus_cases import (
    CONTROLS,
    MAIN,
    OTHER,
    SECOND,
    STOP,
    THREAD,
    BusCase,
    Reader,
    complete,
    live_turn,
    send,
    started,
    token,
)

# -- who gets it -------------------------------------------------------------------------------------


async def test_a_wake_reaches_every_worker_and_names_its_thread(case: BusCase) -> None:
    first: list[str] = []
    second: list[str] = []
    case.subscriber.on_wake(first.append)
    case.subscriber.on_wake(second.append)
    await case.settle()
    case.publisher.wake(THREAD)
    await case.settle()
    case.publisher.wake(OTHER)
    await case.settle()
    assert first == second == [THREAD, OTHER]


async def test_a_change_reaches_each_process_and_names_its_book_and_what_changed(case: BusCase) -> None:
    first: list[tuple[str, str]] = []
    second: list[tuple[str, str]] = []
    case.subscriber.on_changed(lambda book, key: first.append((book, key)))
    end = case.subscriber.on_changed(lambda book, key: second.append((book, key)))
    await case.settle()
    case.publisher.changed("identities")
    case.publisher.changed("questions", "ask_1")
    await case.settle()
    end()
    case.publisher.changed("chats")
    await case.settle()
    assert second == [("identities", ""), ("questions", "ask_1")]
    assert first == [*second, ("chats", "")]


async def test_after_many_wakes_of_a_thread_the_worker_is_called_once_or_more_after_the_last(
    case: BusCase,
) -> None:
    published = 0
    seen: list[int] = []
    case.subscriber.on_wake(lambda _thread: seen.append(published))
    await case.settle()
    for _ in range(50):
        published += 1
        case.publisher.wake(THREAD)
    await case.settle()
    assert 1 <= len(seen) <= 50
    assert seen[-1] == 50


async def test_controls_reach_their_owner_alone_unchanged_and_in_order(case: BusCase) -> None:
    mine: list[Control] = []
    others: list[Control] = []
    case.subscriber.on_control("own_1", mine.append)
    case.subscriber.on_control("own_2", others.append)
    await case.settle()
    for control in CONTROLS:
        case.publisher.control("own_1", control)
    case.publisher.control("own_2", STOP)
    case.publisher.control("own_1", STOP)
    await case.settle()
    assert mine == [*CONTROLS, STOP]
    assert others == [STOP]


async def test_a_control_for_every_owner_reaches_each_once(case: BusCase) -> None:
    mine: list[Control] = []
    others: list[Control] = []
    case.subscriber.on_control(EVERY_OWNER, mine.append)
    case.publisher.on_control(EVERY_OWNER, others.append)
    await case.settle()
    for control in CONTROLS:
        case.publisher.control(EVERY_OWNER, control)
    await case.settle()
    assert mine == others == list(CONTROLS)


async def test_an_entry_of_the_log_reaches_the_handler_of_its_account_alone(case: BusCase) -> None:
    main: list[Recorded] = []
    second: list[Recorded] = []
    case.subscriber.on_recorded(MAIN, main.append)
    end = case.subscriber.on_recorded(SECOND, second.append)
    with pytest.raises(ValueError, match=r"telegram:main has a handler of its entries already"):
        case.subscriber.on_recorded(MAIN, main.append)
    await case.settle()
    sent = [Recorded(thread=ThreadKey.decode(THREAD), entry_id=number) for number in (3, 4)]
    other = Recorded(thread=ThreadKey(channel="telegram", account="second", chat="1"), entry_id=5)
    for one in (*sent, other):
        case.publisher.recorded(one)
    await case.settle()
    assert (main, second) == (sent, [other])
    end()
    case.publisher.recorded(other)
    await case.settle()
    assert second == [other]


async def test_an_outbox_signal_reaches_its_account_alone_and_names_its_newest_row(case: BusCase) -> None:
    main: list[tuple[tuple[str, str], int]] = []
    second: list[tuple[tuple[str, str], int]] = []
    case.subscriber.on_outbox(MAIN, lambda account, row: main.append((account, row)))
    case.subscriber.on_outbox(SECOND, lambda account, row: second.append((account, row)))
    await case.settle()
    for row in (1, 2, 4):
        case.publisher.outbox(MAIN, row)
    case.publisher.outbox(SECOND, 3)
    await case.settle()
    assert main[-1] == (MAIN, 4)
    assert {account for account, _ in main} == {MAIN}
    assert second == [(SECOND, 3)]


async def test_events_reach_the_reader_of_their_account_alone(case: BusCase) -> None:
    main, second = Reader(), Reader()
    case.subscriber.on_events(MAIN, main)
    case.subscriber.on_events(SECOND, second)
    await case.settle()
    await send(case.publisher.events(live_turn("m1")), started("m1"))
    await send(case.publisher.events(live_turn("m2", account=SECOND)), started("m2"))
    await case.settle()
    assert main.shown == [("m1", started("m1"))]
    assert second.shown == [("m2", started("m2"))]
    assert main.turns == [live_turn("m1")]


async def test_an_account_has_one_reader_and_one_sender(case: BusCase) -> None:
    first = Reader()
    rows: list[int] = []
    case.subscriber.on_events(MAIN, first)
    case.subscriber.on_outbox(MAIN, lambda _account, row: rows.append(row))
    with pytest.raises(ValueError, match=r"telegram:main has a reader of its events already"):
        case.subscriber.on_events(MAIN, Reader())
    with pytest.raises(ValueError, match=r"telegram:main has a handler of its outbox already"):
        case.subscriber.on_outbox(MAIN, lambda _account, row: rows.append(-row))
    await case.settle()
    await send(case.publisher.events(live_turn()), started())
    case.publisher.outbox(MAIN, 1)
    await case.settle()
    assert (first.types("m1"), rows) == (["turn_started"], [1])


# -- in which order ----------------------------------------------------------------------------------


async def test_the_events_of_a_turn_arrive_once_and_in_order_beside_those_of_another(case: BusCase) -> None:
    reader = Reader()
    case.subscriber.on_events(MAIN, reader)
    await case.settle()
    one = case.publisher.events(live_turn("m1", chat="1"))
    other = case.publisher.events(live_turn("m2", chat="2"))
    sent: dict[str, list[PipelineEvent]] = {"m1": [], "m2": []}
    for name, stream, event in (
        ("m1", one, started("m1")),
        ("m2", other, started("m2")),
        ("m2", other, token(0, "m2")),
        ("m1", one, token(0, "m1")),
        ("m2", other, token(1, "m2")),
        ("m2", other, complete("m2")),
        ("m1", one, token(1, "m1")),
        ("m1", one, complete("m1")),
    ):
        await send(stream, event)
        sent[name].append(event)
    await case.settle()
    for name, events in sent.items():
        assert [event for turn, event in reader.shown if turn == name] == events


async def test_an_event_is_observed_before_it_is_sent(case: BusCase) -> None:
    reader = Reader()
    case.subscriber.on_events(MAIN, reader)
    await case.settle()
    await send(case.publisher.events(live_turn()), started(), complete())
    await case.settle()
    assert reader.seen == [
        "1 observed turn_started",
        "sent turn_started",
        "1 observed response_complete",
        "sent response_complete",
    ]


async def test_the_next_turn_of_a_thread_under_the_same_fence_follows_the_one_before(case: BusCase) -> None:
    reader = Reader()
    case.subscriber.on_events(MAIN, reader)
    await case.settle()
    for name in ("m1", "m2"):
        await send(case.publisher.events(live_turn(name)), started(name), complete(name))
    await case.settle()
    ends = ["turn_started", "response_complete"]
    assert (reader.types("m1"), reader.types("m2")) == (ends, ends)


async def test_a_turn_under_a_higher_fence_cuts_off_the_earlier_one(case: BusCase) -> None:
    reader = Reader()
    case.subscriber.on_events(MAIN, reader)
    await case.settle()
    frozen = case.publisher.events(live_turn("m1", fence=1))
    await send(frozen, started(), token(0))
    taken_over = case.publisher.events(live_turn("m1", fence=2))
    await send(taken_over, started())
    await case.settle()
    await send(frozen, token(1), complete())
    await send(taken_over, token(0))
    await case.settle()
    assert reader.types("m1") == ["turn_started", "llm_token", "turn_started", "llm_token"]
    assert "1 observed response_complete" not in reader.seen


async def test_a_turn_that_begins_under_a_lower_fence_than_the_running_one_is_not_shown(
    case: BusCase,
) -> None:
    reader = Reader()
    case.subscriber.on_events(MAIN, reader)
    await case.settle()
    newer = case.publisher.events(live_turn("m2", fence=2))
    await send(newer, started("m2"))
    await case.settle()
    await send(case.publisher.events(live_turn("m1", fence=1)), started("m1"), complete("m1"))
    await send(case.publisher.events(live_turn("m3", chat="2", fence=1)), started("m3"))
    await send(newer, complete("m2"))
    await case.settle()
    assert reader.types("m1") == []
    assert reader.types("m2") == ["turn_started", "response_complete"]
    assert reader.types("m3") == ["turn_started"], "another thread has fences independent of these"


async def test_a_long_event_arrives_whole(case: BusCase) -> None:
    reader = Reader()
    case.subscriber.on_events(MAIN, reader)
    await case.settle()
    stream = case.publisher.events(live_turn())
    long = ResponseComplete(session_id="ses", message_id="m1", content='é€\U0001f600\\"' * 9_000, entry_id=4)
    await send(stream, long, complete())
    await case.settle()
    assert reader.shown == [("m1", long), ("m1", complete())]
