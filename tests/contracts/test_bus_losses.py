"""The bus: what is lost, a subscriber that fails, ends or publishes, and closing; on every implementation."""

from __future__ import annotations

from gateway.cluster.signals import Control, Withdrawn
from pipeline.domain.events import LlmToken
from tests.contracts.bus_cases import (
    MAIN,
    OTHER,
    SECOND,
    STOP,
    THREAD,
    BusCase,
    Reader,
    Seen,
    complete,
    live_turn,
    send,
    started,
    token,
)

# -- what is lost ------------------------------------------------------------------------------------


async def test_what_has_no_subscriber_is_lost_without_an_error(case: BusCase) -> None:
    stream = case.publisher.events(live_turn())
    case.publisher.wake(THREAD)
    case.publisher.control("own_1", STOP)
    case.publisher.outbox(MAIN, 1)
    await send(stream, started())
    await case.settle()
    reader, seen = Reader(), Seen()
    seen.subscribe(case)
    case.subscriber.on_events(MAIN, reader)
    await case.settle()
    assert (seen.signals, reader.seen) == ([], [])


async def test_a_long_backlog_loses_tokens_at_most_and_keeps_the_order_of_the_rest(case: BusCase) -> None:
    reader = Reader()
    controls: list[Control] = []
    case.subscriber.on_events(MAIN, reader)
    case.subscriber.on_control("own_1", controls.append)
    await case.settle()
    stream = case.publisher.events(live_turn())
    await send(stream, started())
    for number in range(2_000):
        await send(stream, token(number))
        case.publisher.control("own_1", Withdrawn(thread=THREAD, seq=number))
    await send(stream, complete())
    await case.settle()
    events = [event for _, event in reader.shown]
    assert (events[0], events[-1]) == (started(), complete())
    offsets = [event.offset for event in events if isinstance(event, LlmToken)]
    assert offsets == sorted(set(offsets))
    assert offsets[-1] == 1_999, "the newest is kept"
    assert len(events) == len(offsets) + 2
    assert [control for control in controls if isinstance(control, Withdrawn)] == [
        Withdrawn(thread=THREAD, seq=number) for number in range(2_000)
    ]


# -- a subscriber that fails, ends or publishes ------------------------------------------------------


async def test_a_subscriber_that_raises_stops_neither_others_nor_the_publisher(case: BusCase) -> None:
    def fail(*_signal: object) -> None:
        raise RuntimeError("the subscriber failed")

    seen = Seen()
    case.subscriber.on_wake(fail)
    case.subscriber.on_control("own_1", fail)
    case.subscriber.on_outbox(SECOND, fail)
    seen.subscribe(case)
    await case.settle()
    for _ in range(2):
        case.publisher.wake(THREAD)
        case.publisher.control("own_1", STOP)
        case.publisher.outbox(SECOND, 1)
        case.publisher.outbox(MAIN, 2)
        await case.settle()
    assert seen.signals == [THREAD, STOP, 2] * 2


async def test_a_reader_that_fails_loses_one_event_or_one_turn(case: BusCase) -> None:
    reader = Reader(broken_turns=frozenset({"m1"}), broken_types=frozenset({"llm_token"}))
    case.subscriber.on_events(MAIN, reader)
    await case.settle()
    await send(case.publisher.events(live_turn("m1")), started("m1"), complete("m1"))
    await send(case.publisher.events(live_turn("m2")), started("m2"), token(0, "m2"), complete("m2"))
    await case.settle()
    assert reader.types("m1") == []
    assert reader.types("m2") == ["turn_started", "response_complete"]


async def test_an_ended_subscription_gets_nothing_more(case: BusCase) -> None:
    reader, seen = Reader(), Seen()
    ends = [*seen.subscribe(case), case.subscriber.on_events(MAIN, reader)]
    await case.settle()
    stream = case.publisher.events(live_turn())
    await send(stream, started())
    await case.settle()
    for end in ends:
        end()
    case.publisher.wake(THREAD)
    case.publisher.control("own_1", STOP)
    case.publisher.outbox(MAIN, 1)
    await send(stream, complete())
    await send(case.publisher.events(live_turn("m2")), started("m2"))
    await case.settle()
    assert seen.signals == []
    assert reader.shown == [("m1", started())]


async def test_ending_a_subscription_twice_leaves_its_successor_and_its_twin(case: BusCase) -> None:
    first, second, seen, woken = Reader(), Reader(), Seen(), list[str]()
    ends = [*seen.subscribe(case), case.subscriber.on_events(MAIN, first)]
    case.subscriber.on_wake(woken.append)
    twin = case.subscriber.on_wake(woken.append)
    await case.settle()
    for end in ends:
        end()
    later = Seen()
    later.subscribe(case)
    case.subscriber.on_events(MAIN, second)
    await case.settle()
    for end in (*ends, twin, twin):
        end()
    case.publisher.wake(THREAD)
    await case.settle()
    case.publisher.control("own_1", STOP)
    case.publisher.outbox(MAIN, 1)
    await send(case.publisher.events(live_turn()), started())
    await case.settle()
    assert (seen.signals, later.signals) == ([], [THREAD, STOP, 1])
    assert woken == [THREAD]
    assert (first.shown, second.types("m1")) == ([], ["turn_started"])


async def test_a_handler_may_publish_and_end_subscriptions(case: BusCase) -> None:
    seen: list[str] = []

    def wake_another(thread: str) -> None:
        if thread == THREAD:
            end_second()
            case.subscriber.on_wake(lambda later: seen.append(f"later {later}"))
            case.publisher.wake(OTHER)

    case.subscriber.on_wake(wake_another)
    end_second = case.subscriber.on_wake(lambda thread: seen.append(f"ended {thread}"))
    await case.settle()
    case.publisher.wake(THREAD)
    await case.settle()
    assert [one for one in seen if one != f"later {THREAD}"] == [f"later {OTHER}"]


# -- closing -----------------------------------------------------------------------------------------


async def test_a_closed_bus_delivers_nothing_and_refuses_nothing(case: BusCase) -> None:
    reader, seen = Reader(), Seen()
    ends = [*seen.subscribe(case), case.subscriber.on_events(MAIN, reader)]
    await case.settle()
    stream = case.publisher.events(live_turn())
    await send(stream, started())
    await case.settle()
    for bus in (case.publisher, case.subscriber, case.publisher):
        await bus.close()
    late = Seen()
    ends += [*late.subscribe(case), case.subscriber.on_events(MAIN, reader)]
    await case.settle()
    case.publisher.wake(THREAD)
    case.publisher.control("own_1", STOP)
    case.publisher.outbox(MAIN, 1)
    await send(stream, complete())
    await send(case.publisher.events(live_turn("m2")), started("m2"))
    await case.settle()
    for end in ends:
        end()
    assert (seen.signals, late.signals) == ([], [])
    assert reader.shown == [("m1", started())]
