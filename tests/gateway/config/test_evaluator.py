"""The settings of the shield's evaluator: which model, address and key, and what is refused.

Covers: gateway/config/evaluator_rules.py, gateway/config/shield.py.
"""

from __future__ import annotations

import pytest

from gateway.config import evaluator_settings, load
from tests.gateway.config.support import problem_lines

_SELF = ", which proposes actions, and a model must not judge itself (in the option --set); name another"


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["llm.model=openai/a", "shield.evaluator=openai/a"], f"is also llm.model{_SELF}"),
        (["llm.model=openai/a", "shield.evaluator=litellm/openai/A"], f"is also llm.model{_SELF}"),
        (['llm.choices=["openai/b"]', "shield.evaluator=openai/b"], f"is also one of llm.choices{_SELF}"),
        (
            ["budget.cheaper_model=openai/b", "shield.evaluator=openai/b"],
            f"is also budget.cheaper_model{_SELF}",
        ),
        (["agents.x.model=openai/b", "shield.evaluator=openai/b"], f"is also agents.x.model{_SELF}"),
        (
            ['agents.x.choices=["openai/b"]', "shield.evaluator=openai/b"],
            f"is also one of agents.x.choices{_SELF}",
        ),
        (
            ["llm.model=openai/a", "shield.evaluator=local"],
            "is the embedded model, which is too small to judge",
        ),
    ],
)
def test_a_model_that_proposes_or_is_too_small_is_no_evaluator(overrides: list[str], words: str) -> None:
    (line,) = problem_lines(None, {}, overrides)
    assert line.startswith(f"shield.evaluator: {words}")


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        (
            ["shield.evaluator_api_base=http://127.0.0.1:1"],
            "shield.evaluator_api_base: has no effect, as shield.evaluator is not set (in the option --set)",
        ),
        (
            ["shield.evaluator=openai_compatible/b"],
            "shield.evaluator_api_base: is missing, as shield.evaluator names no provider (in the option ",
        ),
        (["shield.evaluator=a b"], "shield.evaluator: is not the name of a model"),
        (["shield.evaluator_timeout_s=0"], "shield.evaluator_timeout_s: expected a number from 1 to 120"),
    ],
)
def test_each_mistake_is_named_with_its_setting(overrides: list[str], line: str) -> None:
    (found,) = problem_lines(None, {}, overrides)
    assert found.startswith(line)


def test_the_key_of_the_proposing_model_goes_to_no_other_provider_or_address() -> None:
    given = ["llm.model=openai/a", "llm.api_base=http://127.0.0.1:1", "llm.api_key=env:A"]
    environ = {"A": "lion", "B": "wolf"}
    same = evaluator_settings(load(None, environ, [*given, "shield.evaluator=openai/b"])).llm
    assert (same.model, same.api_base, same.api_key is not None) == ("openai/b", "http://127.0.0.1:1", True)
    other = evaluator_settings(load(None, environ, [*given, "shield.evaluator=anthropic/b"])).llm
    assert (other.model, other.api_base, other.api_key) == ("anthropic/b", None, None)
    there = "shield.evaluator_api_base=http://127.0.0.1:2"
    moved = evaluator_settings(load(None, environ, [*given, "shield.evaluator=openai/b", there])).llm
    assert (moved.api_base, moved.api_key) == ("http://127.0.0.1:2", None)
    keyed = [*given, "shield.evaluator=openai/b", there, "shield.evaluator_api_key=env:B"]
    key = evaluator_settings(load(None, environ, keyed)).llm.api_key
    assert key is not None
    assert key.resolve() == "wolf"
