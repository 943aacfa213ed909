"""The bus: who gets a signal, in which order, and what is lost; on every implementation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from gateway.cluster.bus import EventStream, Unsubscribe
from gateway.cluster.signals import Answered, Control, Interrupt, StopBefore, Withdrawn
from pipeline.domain.events import LlmToken, PipelineEvent, ResponseComplete
from tests.contracts.bus_cases import (
    CASES,
    MAIN,
    SECOND,
    BusCase,
    MakeCase,
    Reader,
    complete,
    live_turn,
    started,
    token,
)

_THREAD, _OTHER = "telegram:main:1", "telegram:main:2"
_STOP = StopBefore(thread=_THREAD, seq=7, cancelled=2)
_CONTROLS: tuple[Control, ...] = (
    _STOP,
    Withdrawn(thread=_THREAD, seq=5),
    Interrupt(thread=_THREAD, seq=8, at=1_700_000_000.25),
    Answered(thread=_THREAD, interaction_id="tool_act_1"),
)


@pytest.fixture(params=CASES, ids=lambda make: make.__name__)
async def case(request: pytest.FixtureRequest) -> AsyncIterator[BusCase]:
    make: MakeCase = request.param
    async with make(request) as made:
        yield made


async def _send(stream: EventStream, *events: PipelineEvent) -> None:
    """Send as a turn does."""
    for event in events:
        stream.observe(event)
        # A reader in the same process may raise; the turn logs that.
        with suppress(RuntimeError):
            await stream.send_event(event)


# -- who gets it -------------------------------------------------------------------------------------


async def test_a_wake_reaches_every_worker_and_names_its_thread(case: BusCase) -> None:
    first: list[str] = []
    second: list[str] = []
    case.subscriber.on_wake(first.append)
    case.subscriber.on_wake(second.append)
    await case.settle()
    case.publisher.wake(_THREAD)
    await case.settle()
    case.publisher.wake(_OTHER)
    await case.settle()
    assert first == second == [_THREAD, _OTHER]


async def test_after_many_wakes_of_a_thread_the_worker_is_called_once_or_more_after_the_last(
    case: BusCase,
) -> None:
    published = 0
    seen: list[int] = []
    case.subscriber.on_wake(lambda _thread: seen.append(published))
    await case.settle()
    for _ in range(50):
        published += 1
        case.publisher.wake(_THREAD)
    await case.settle()
    assert 1 <= len(seen) <= 50
    assert seen[-1] == 50


async def test_controls_reach_their_owner_alone_unchanged_and_in_order(case: BusCase) -> None:
    mine: list[Control] = []
    others: list[Control] = []
    case.subscriber.on_control("own_1", mine.append)
    case.subscriber.on_control("own_2", others.append)
    await case.settle()
    for control in _CONTROLS:
        case.publisher.control("own_1", control)
    case.publisher.control("own_2", _STOP)
    case.publisher.control("own_1", _STOP)
    await case.settle()
    assert mine == [*_CONTROLS, _STOP]
    assert others == [_STOP]


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
    await _send(case.publisher.events(live_turn("m1")), started("m1"))
    await _send(case.publisher.events(live_turn("m2", account=SECOND)), started("m2"))
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
    await _send(case.publisher.events(live_turn()), started())
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
        await _send(stream, event)
        sent[name].append(event)
    await case.settle()
    for name, events in sent.items():
        assert [event for turn, event in reader.shown if turn == name] == events


async def test_an_event_is_observed_before_it_is_sent(case: BusCase) -> None:
    reader = Reader()
    case.subscriber.on_events(MAIN, reader)
    await case.settle()
    await _send(case.publisher.events(live_turn()), started(), complete())
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
        await _send(case.publisher.events(live_turn(name)), started(name), complete(name))
    await case.settle()
    ends = ["turn_started", "response_complete"]
    assert (reader.types("m1"), reader.types("m2")) == (ends, ends)


async def test_a_turn_under_a_higher_fence_cuts_off_the_earlier_one(case: BusCase) -> None:
    reader = Reader()
    case.subscriber.on_events(MAIN, reader)
    await case.settle()
    frozen = case.publisher.events(live_turn("m1", fence=1))
    await _send(frozen, started(), token(0))
    taken_over = case.publisher.events(live_turn("m1", fence=2))
    await _send(taken_over, started())
    await case.settle()
    await _send(frozen, token(1), complete())
    await _send(taken_over, token(0))
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
    await _send(newer, started("m2"))
    await case.settle()
    await _send(case.publisher.events(live_turn("m1", fence=1)), started("m1"), complete("m1"))
    await _send(case.publisher.events(live_turn("m3", chat="2", fence=1)), started("m3"))
    await _send(newer, complete("m2"))
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
    await _send(stream, long, complete())
    await case.settle()
    assert reader.shown == [("m1", long), ("m1", complete())]


# -- what is lost ------------------------------------------------------------------------------------


async def test_what_has_no_subscriber_is_lost_without_an_error(case: BusCase) -> None:
    stream = case.publisher.events(live_turn())
    case.publisher.wake(_THREAD)
    case.publisher.control("own_1", _STOP)
    case.publisher.outbox(MAIN, 1)
    await _send(stream, started())
    await case.settle()
    reader, seen = Reader(), _Seen()
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
    await _send(stream, started())
    for number in range(2_000):
        await _send(stream, token(number))
        case.publisher.control("own_1", Withdrawn(thread=_THREAD, seq=number))
    await _send(stream, complete())
    await case.settle()
    events = [event for _, event in reader.shown]
    assert (events[0], events[-1]) == (started(), complete())
    offsets = [event.offset for event in events if isinstance(event, LlmToken)]
    assert offsets == sorted(set(offsets))
    assert offsets[-1] == 1_999, "the newest is kept"
    assert len(events) == len(offsets) + 2
    assert [control for control in controls if isinstance(control, Withdrawn)] == [
        Withdrawn(thread=_THREAD, seq=number) for number in range(2_000)
    ]


# -- a subscriber that fails, ends or publishes ------------------------------------------------------


async def test_a_subscriber_that_raises_stops_neither_others_nor_the_publisher(case: BusCase) -> None:
    def fail(*_signal: object) -> None:
        raise RuntimeError("the subscriber failed")

    seen = _Seen()
    case.subscriber.on_wake(fail)
    case.subscriber.on_control("own_1", fail)
    case.subscriber.on_outbox(SECOND, fail)
    seen.subscribe(case)
    await case.settle()
    for _ in range(2):
        case.publisher.wake(_THREAD)
        case.publisher.control("own_1", _STOP)
        case.publisher.outbox(SECOND, 1)
        case.publisher.outbox(MAIN, 2)
        await case.settle()
    assert seen.signals == [_THREAD, _STOP, 2] * 2


async def test_a_reader_that_fails_loses_one_event_or_one_turn(case: BusCase) -> None:
    reader = Reader(broken_turns=frozenset({"m1"}), broken_types=frozenset({"llm_token"}))
    case.subscriber.on_events(MAIN, reader)
    await case.settle()
    await _send(case.publisher.events(live_turn("m1")), started("m1"), complete("m1"))
    await _send(case.publisher.events(live_turn("m2")), started("m2"), token(0, "m2"), complete("m2"))
    await case.settle()
    assert reader.types("m1") == []
    assert reader.types("m2") == ["turn_started", "response_complete"]


async def test_an_ended_subscription_gets_nothing_more(case: BusCase) -> None:
    reader, seen = Reader(), _Seen()
    ends = [*seen.subscribe(case), case.subscriber.on_events(MAIN, reader)]
    await case.settle()
    stream = case.publisher.events(live_turn())
    await _send(stream, started())
    await case.settle()
    for end in ends:
        end()
    case.publisher.wake(_THREAD)
    case.publisher.control("own_1", _STOP)
    case.publisher.outbox(MAIN, 1)
    await _send(stream, complete())
    await _send(case.publisher.events(live_turn("m2")), started("m2"))
    await case.settle()
    assert seen.signals == []
    assert reader.shown == [("m1", started())]


async def test_ending_a_subscription_twice_leaves_its_successor_and_its_twin(case: BusCase) -> None:
    first, second, seen, woken = Reader(), Reader(), _Seen(), list[str]()
    ends = [*seen.subscribe(case), case.subscriber.on_events(MAIN, first)]
    case.subscriber.on_wake(woken.append)
    twin = case.subscriber.on_wake(woken.append)
    await case.settle()
    for end in ends:
        end()
    later = _Seen()
    later.subscribe(case)
    case.subscriber.on_events(MAIN, second)
    await case.settle()
    for end in (*ends, twin, twin):
        end()
    case.publisher.wake(_THREAD)
    await case.settle()
    case.publisher.control("own_1", _STOP)
    case.publisher.outbox(MAIN, 1)
    await _send(case.publisher.events(live_turn()), started())
    await case.settle()
    assert (seen.signals, later.signals) == ([], [_THREAD, _STOP, 1])
    assert woken == [_THREAD]
    assert (first.shown, second.types("m1")) == ([], ["turn_started"])


async def test_a_handler_may_publish_and_end_subscriptions(case: BusCase) -> None:
    seen: list[str] = []

    def wake_another(thread: str) -> None:
        if thread == _THREAD:
            end_second()
            case.subscriber.on_wake(lambda later: seen.append(f"later {later}"))
            case.publisher.wake(_OTHER)

    case.subscriber.on_wake(wake_another)
    end_second = case.subscriber.on_wake(lambda thread: seen.append(f"ended {thread}"))
    await case.settle()
    case.publisher.wake(_THREAD)
    await case.settle()
    assert [one for one in seen if one != f"later {_THREAD}"] == [f"later {_OTHER}"]


# -- closing -----------------------------------------------------------------------------------------


async def test_a_closed_bus_delivers_nothing_and_refuses_nothing(case: BusCase) -> None:
    reader, seen = Reader(), _Seen()
    ends = [*seen.subscribe(case), case.subscriber.on_events(MAIN, reader)]
    await case.settle()
    stream = case.publisher.events(live_turn())
    await _send(stream, started())
    await case.settle()
    for bus in (case.publisher, case.subscriber, case.publisher):
        await bus.close()
    late = _Seen()
    ends += [*late.subscribe(case), case.subscriber.on_events(MAIN, reader)]
    await case.settle()
    case.publisher.wake(_THREAD)
    case.publisher.control("own_1", _STOP)
    case.publisher.outbox(MAIN, 1)
    await _send(stream, complete())
    await _send(case.publisher.events(live_turn("m2")), started("m2"))
    await case.settle()
    for end in ends:
        end()
    assert (seen.signals, late.signals) == ([], [])
    assert reader.shown == [("m1", started())]


class _Seen:
    """The wakes, the controls of `own_1` and the rows of MAIN that arrived, in order."""

    def __init__(self) -> None:
        self.signals: list[object] = []

    def subscribe(self, case: BusCase) -> tuple[Unsubscribe, ...]:
        """Subscribe to all three; what ends each."""
        bus = case.subscriber
        return (
            bus.on_wake(self.signals.append),
            bus.on_control("own_1", self.signals.append),
            bus.on_outbox(MAIN, lambda _account, row: self.signals.append(row)),
        )
