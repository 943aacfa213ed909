"""How often a node is tried again, and after how long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.errors import GraphError, InvalidInput, ModelRejected, ModelTimeout, ModelUnavailable
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.structure import NodeSpec


async def _node(_state: State, _context: None) -> NodeResult:
    return NodeResult()


def test_the_default_is_three_executions_with_the_first_included() -> None:
    assert NodeSpec(run=_node).attempts == 3
    assert NodeSpec(run=_node, retry=RetryPolicy(max_attempts=1)).attempts == 1


def test_a_node_that_retries_inside_itself_is_run_once() -> None:
    assert NodeSpec(run=_node, event_loop=True, retry=RetryPolicy(max_attempts=9)).attempts == 1


def test_the_waits_double_from_one_second_up_to_the_cap() -> None:
    policy = RetryPolicy(max_delay_s=10)
    assert [policy.delay(attempt, 0.0) for attempt in range(1, 7)] == [1, 2, 4, 8, 10, 10]


def test_the_first_wait_and_its_growth_are_settings() -> None:
    policy = RetryPolicy(delay_s=0.5, factor=3)
    assert [policy.delay(attempt, 0.0) for attempt in (1, 2, 3)] == [0.5, 1.5, 4.5]


def test_jitter_adds_its_share_by_chance() -> None:
    policy = RetryPolicy(jitter=0.5)
    assert policy.delay(1, 0.5) == 1.25
    assert policy.delay(3, 0.5) == 5.0
    assert RetryPolicy(jitter=0).delay(1, 0.99) == 1.0


@given(
    attempt=st.integers(1, 10_000),
    chance=st.floats(0, 1, exclude_max=True),
    delay_s=st.floats(0, 100),
    factor=st.one_of(st.floats(1, 10), st.integers(1, 10)),
    jitter=st.floats(0, 1),
)
def test_a_wait_stays_between_its_base_and_the_base_with_all_jitter(
    attempt: int, chance: float, delay_s: float, factor: float, jitter: float
) -> None:
    policy = RetryPolicy(delay_s=delay_s, factor=factor, jitter=jitter)
    base = policy.delay(attempt, 0.0)
    assert min(delay_s, 60.0) <= base <= 60.0
    assert base <= policy.delay(attempt, chance) <= base * (1 + jitter)


def test_after_very_many_attempts_the_wait_is_the_cap() -> None:
    assert RetryPolicy().delay(5000, 0.0) == 60.0
    assert RetryPolicy(delay_s=0).delay(5000, 0.0) == 0.0


@pytest.mark.parametrize("error", [ModelRejected("no key"), InvalidInput("no text"), GraphError("no node")])
def test_permanent_errors_are_not_tried_again(error: Exception) -> None:
    assert not RetryPolicy().covers(error)
    assert not RetryPolicy(retry_on=(type(error),)).covers(error)


@pytest.mark.parametrize(
    "error", [ModelUnavailable("busy"), ModelTimeout("late"), ValueError("odd"), TimeoutError()]
)
def test_other_errors_are_tried_again(error: Exception) -> None:
    assert RetryPolicy().covers(error)


def test_with_retry_on_only_the_named_errors_and_their_kinds_are_tried_again() -> None:
    policy = RetryPolicy(retry_on=(OSError, ModelTimeout))
    assert policy.covers(ConnectionResetError())
    assert policy.covers(ModelTimeout("late"))
    assert not policy.covers(ValueError("odd"))
    assert not policy.covers(ModelUnavailable("busy"))


def test_with_no_named_errors_none_is_tried_again() -> None:
    assert not RetryPolicy(retry_on=()).covers(ValueError("odd"))
