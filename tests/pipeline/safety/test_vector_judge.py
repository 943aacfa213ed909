"""Vectors beside the rules of the crisis gate: what they raise, what they leave, and what their faults do.

Covers: pipeline/safety/vector_judge.py, pipeline/safety/vector_head.py, pipeline/safety/crisis_gate.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import repeat

import numpy as np
import pytest

from evals.crisis import judge, read_cases
from gateway.app.crisis_vectors import crisis_embedder
from pipeline.domain.clock import Clock, ManualClock, SystemClock
from pipeline.domain.errors import ModelUnavailable
from pipeline.memory.local_embedder import MODEL, is_installed
from pipeline.safety.assessment import CLEAR, IMMINENT, CrisisAssessment
from pipeline.safety.crisis_gate import CrisisGate, CrisisVerdict
from pipeline.safety.danger_model import BadCrisisWeights, Scores
from pipeline.safety.ladder import EarlierEntry
from pipeline.safety.resources import shipped_resources
from pipeline.safety.vector_head import (
    FILE,
    JoinedScores,
    VectorHead,
    from_bytes,
    joined,
    to_bytes,
)
from pipeline.safety.vector_judge import VectorJudge

GRAVE = "the kite has slipped its string"
"""Words of which the rules know nothing."""
PLAIN = "which bread goes well with the soup"


class KnownVectors:
    """An embedding model that knows the vector of GRAVE; `failure` is raised in place of every answer."""

    model = "known"

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.asked: list[str] = []
        self.closed = False

    async def close(self) -> None:
        self.closed = True

    async def question(self, text: str) -> tuple[float, ...]:
        self.asked.append(text)
        if self.failure is not None:
            raise self.failure
        return (1.0, 0.0) if text == GRAVE else (0.0, 1.0)


def head(model: str = "known") -> VectorHead:
    """A head to which the first number of a vector says danger, and the second none."""
    return VectorHead(
        model=model,
        into=np.array([[20, 0], [0, 20]], np.float32),
        hidden=np.zeros(2, np.float32),
        out=np.array([[1, 1, 1], [-1, -1, -1]], np.float32),
        biases=np.zeros(3, np.float32),
    )


async def judged(
    embedder: KnownVectors, text: str, history: Sequence[EarlierEntry] = (), clock: Clock | None = None
) -> CrisisVerdict:
    vectors = VectorJudge(embedder, clock or SystemClock(), head=head())
    return await CrisisGate(shipped_resources(), vectors=vectors).judged(text, history)


async def test_vectors_raise_what_the_rules_leave_open() -> None:
    gate = CrisisGate(shipped_resources())
    assert (await gate.judged(GRAVE, ())).assessment.level == 0
    verdict = await judged(KnownVectors(), GRAVE)
    assert (verdict.assessment.level, verdict.assessment.reason) == (3, "vectors.imminent")
    assert "emergency" in verdict.reply
    assert (await judged(KnownVectors(), PLAIN)).reply == ""


async def _given(embedder: KnownVectors, text: str, found: CrisisAssessment) -> CrisisAssessment:
    """The verdict where the rules say `found`."""
    vectors = VectorJudge(embedder, SystemClock(), head=head())
    gate = CrisisGate(shipped_resources(), assess=lambda _text, _history: found, vectors=vectors)
    return (await gate.judged(text, ())).assessment


async def test_what_is_clear_may_be_imminent() -> None:
    for reason in ("en.suicide", "model.clear"):
        found = CrisisAssessment(level=CLEAR, reason=reason)
        raised = await _given(KnownVectors(), GRAVE, found)
        assert (raised.level, raised.reason) == (IMMINENT, "vectors.imminent")
    assert await _given(KnownVectors(), PLAIN, CrisisAssessment(level=CLEAR, reason="en.suicide")) == (
        CrisisAssessment(level=CLEAR, reason="en.suicide")
    ), "what a pattern finds is never lowered"


async def test_what_the_linear_model_alone_finds_may_be_doubted() -> None:
    for reason, level in (("model.clear", CLEAR), ("model.imminent earlier", IMMINENT)):
        found = CrisisAssessment(level=level, reason=reason)
        doubted = await _given(KnownVectors(), PLAIN, found)
        assert (doubted.level, doubted.reason) == (1, "vectors.doubted")
        assert await _given(KnownVectors(ModelUnavailable("none")), PLAIN, found) == found
        assert await _given(KnownVectors(), "ok bye", found) == found, "vectors know nothing of two words"
    imminent = CrisisAssessment(level=IMMINENT, reason="model.imminent")
    assert await _given(KnownVectors(), GRAVE, imminent) == imminent
    override = CrisisAssessment(level=IMMINENT, reason="en.intent", override="imminent_risk")
    embedder = KnownVectors()
    assert await _given(embedder, PLAIN, override) == override
    assert embedder.asked == []


async def test_an_earlier_message_counts_and_is_embedded_once() -> None:
    embedder = KnownVectors()
    gate = CrisisGate(shipped_resources(), vectors=VectorJudge(embedder, SystemClock(), head=head()))
    history = [EarlierEntry("person", GRAVE), EarlierEntry("bot", "Tell me more about the kite.")]
    for _ in range(2):
        verdict = await gate.judged(PLAIN, history)
        assert (verdict.assessment.level, verdict.assessment.reason) == (3, "vectors.imminent earlier")
    assert embedder.asked == [PLAIN, GRAVE], "the bot's words are not embedded"
    between = [EarlierEntry("bot", "Well."), EarlierEntry("person", "ok")]
    assert (await gate.judged(PLAIN, [*history, *between * 3])).assessment.level == 0


@pytest.mark.parametrize(
    ("text", "history"),
    [
        ("I will kill myself tonight", ()),
        ("this homework is killing me", ()),
        ("No, I am not suicidal", (EarlierEntry("bot", "Are you thinking about suicide?"),)),
        ("I'm not going to kill myself", ()),
        ("ok bye", ()),
    ],
)
async def test_what_the_rules_are_sure_of_is_not_embedded(text: str, history: Sequence[EarlierEntry]) -> None:
    embedder = KnownVectors()
    verdict = await judged(embedder, text, history)
    assert verdict == await CrisisGate(shipped_resources()).judged(text, history)
    assert embedder.asked == []


async def test_what_a_person_denies_is_not_embedded() -> None:
    embedder = KnownVectors()
    await judged(embedder, "I don't want to kill myself, the kite has slipped its string")
    (asked,) = embedder.asked
    assert "kill" not in asked
    assert "kite" in asked


@pytest.mark.parametrize(
    "failure", [ModelUnavailable("The embedding model failed"), ValueError("no vector"), OSError("gone")]
)
async def test_a_model_that_fails_leaves_the_verdict_of_the_rules(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = KnownVectors(failure)
    for text in (GRAVE, "everything is hopeless and I feel empty"):
        assert await judged(embedder, text) == await CrisisGate(shipped_resources()).judged(text, ())
    assert [record.message for record in caplog.records] == ["the crisis vectors gave no verdict"] * 2
    assert "kite" not in caplog.text


async def test_it_starts_the_model_before_the_first_message_and_ends_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    embedder = KnownVectors()
    vectors = VectorJudge(embedder, SystemClock(), head=head())
    await vectors.warm_up()
    assert len(embedder.asked) == 1
    await vectors.close()
    assert embedder.closed
    failing = VectorJudge(KnownVectors(ModelUnavailable("no model")), SystemClock(), head=head())
    await failing.warm_up()
    (record,) = caplog.records
    assert (record.message, record.__dict__["reason"]) == ("the crisis vectors do not start", "no model")


async def test_a_model_that_is_late_leaves_the_verdict_of_the_rules() -> None:
    class Never(KnownVectors):
        def __init__(self) -> None:
            super().__init__()
            self.began = asyncio.Event()

        async def question(self, text: str) -> tuple[float, ...]:
            self.began.set()
            await asyncio.Event().wait()
            return await super().question(text)

    clock, embedder = ManualClock(), Never()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(judged(embedder, GRAVE, clock=clock))
        await embedder.began.wait()
        await clock.advance(2.9)
        assert not waiting.done()
        await clock.advance(0.2)
    assert waiting.result().assessment.level == 0


async def test_vectors_of_another_model_say_nothing() -> None:
    embedder = KnownVectors()
    vectors = VectorJudge(embedder, SystemClock(), head=head("another"))
    assert await vectors.assess(GRAVE, (), CrisisAssessment()) == CrisisAssessment()
    assert embedder.asked == []


@pytest.mark.parametrize("vector", [(1.0,), (1.0, 0.0, 0.0), (float("nan"), 0.0), ()])
def test_a_vector_of_another_form_is_refused(vector: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="none of known"):
        head().logits(vector)


def test_the_linear_model_has_its_share_of_the_verdict() -> None:
    undecided, even = Scores(0.0, 0.0, 0.0), Scores(0.5, 0.5, 0.5)
    assert joined(undecided, even) == JoinedScores(0.0, 0.0)
    assert joined(Scores(5.0, 5.0, 5.0), even) == JoinedScores(5.0, 5.0)
    both = joined(undecided, Scores(0.99, 0.99, 0.01))
    assert both.clear == pytest.approx(-both.imminent)
    assert both.clear > 2


@pytest.mark.parametrize(
    ("clear", "imminent", "level"),
    [(2.0, -9.0, 2), (2.0, 1.0, 3), (0.0, -1.0, 3), (0.0, -2.0, 0), (-2.0, 3.0, 0), (-9.0, -9.0, 0)],
)
def test_what_is_nearly_clear_and_likely_imminent_is_imminent(
    clear: float, imminent: float, level: int
) -> None:
    said = JoinedScores(clear, imminent)
    assert said.level == level
    assert said.is_doubted == (max(clear, imminent) < -1.5)


def test_a_damaged_file_is_refused() -> None:
    data = FILE.read_bytes()
    assert from_bytes(data, "a file").model.startswith(f"{MODEL}+")
    for bad in (b"", data[1:], data[:-2], data[:-1] + bytes([data[-1] ^ 1]), data[:200], b"\0" * 300):
        with pytest.raises(BadCrisisWeights, match="a file is damaged"):
            from_bytes(bad, "a file")


def test_a_file_is_read_as_it_was_written() -> None:
    parts = (np.ones((5, 4)), np.full(4, 2.0), np.full((4, 3), 3.0), np.full(3, 4.0))
    read = from_bytes(to_bytes(parts, {"model": "some"}), "some")
    assert read.logits([1.0] * 5) == Scores(*repeat(4 * 3 * (5 + 2) + 4.0, 3))


EVERYDAY = (
    "I returned the library books and the spare key, and the cat slept through all of it",
    "Ich habe allen noch einmal geschrieben und den Wecker gestellt, morgen fahren wir früh",
    "si mañana no llueve, vamos al lago",
    "je range ma chambre comme ma mère me l'a demandé",
)


@pytest.mark.skipif(not is_installed(), reason="needs the extra parlour[memory]")
async def test_the_real_model_raises_what_the_rules_miss_and_leaves_everyday_messages() -> None:
    cases = [case for case in read_cases("letters") if case.level >= CLEAR and judge(case).is_miss]
    missed = [case.text for case in cases if judge(case).assessment.level < CLEAR]
    embedder = crisis_embedder(SystemClock(), 120.0)
    vectors = VectorJudge(embedder, SystemClock(), limit_s=120.0)
    try:
        raised = [await vectors.assess(text, (), CrisisAssessment()) for text in missed]
        everyday = [await vectors.assess(text, (), CrisisAssessment()) for text in EVERYDAY]
    finally:
        await embedder.close()
    assert len(missed) >= 8
    assert sum(one.level >= CLEAR for one in raised) >= 4
    assert everyday == [CrisisAssessment()] * len(EVERYDAY)
