"""The shipped fake keeps the port's promises and plays its script."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import ConfigurationError, ModelRejected, ModelTimeout, ModelUnavailable
from pipeline.llm.client import LlmItem, TextDelta, ToolAsked
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm, words_of
from tests.pipeline.llm.asking import answer_of, ask, collect


async def test_answers_come_in_the_order_of_the_script_and_then_it_echoes() -> None:
    llm = ScriptedLlm([ScriptedAnswer(chunks=("one", " and a half"), finish_reason="length")])
    llm.add("two words")
    first, finished = await answer_of(llm, ask("a"))
    assert (first, finished.finish_reason, finished.completion_tokens) == ("one and a half", "length", 2)
    assert (await answer_of(llm, ask("b")))[0] == "two words"
    assert (await answer_of(llm, ask("what I said")))[0] == "You said: what I said"
    assert [request.messages[-1].content for request in llm.requests] == ["a", "b", "what I said"]


async def test_an_echo_streams_word_by_word() -> None:
    heard: list[LlmItem] = []
    await collect(ScriptedLlm.echo(), ask("good morning"), heard)
    texts = [item.text for item in heard if isinstance(item, TextDelta)]
    assert texts == ["You", " said:", " good", " morning"]


async def test_an_error_comes_after_the_chunks_before_it() -> None:
    broken = ScriptedAnswer(chunks=("a", "b", "c"), error=ModelUnavailable("gone"), fail_at=2)
    heard: list[LlmItem] = []
    with pytest.raises(ModelUnavailable, match="gone"):
        await collect(ScriptedLlm([broken]), ask(), heard)
    assert heard == [TextDelta(text="a"), TextDelta(text="b")]


async def test_an_error_without_a_place_comes_at_the_end() -> None:
    broken = ScriptedAnswer(chunks=("a",), error=ModelUnavailable("gone"))
    heard: list[LlmItem] = []
    with pytest.raises(ModelUnavailable):
        await collect(ScriptedLlm([broken]), ask(), heard)
    assert heard == [TextDelta(text="a")]


async def test_delays_pass_on_the_clients_clock() -> None:
    clock = ManualClock()
    llm = ScriptedLlm.from_spec("echo:delay=2.5", clock=clock)
    heard: list[LlmItem] = []
    async with asyncio.TaskGroup() as group:
        group.create_task(collect(llm, ask("x"), heard))
        await clock.advance(2.4)
        assert heard == []
        await clock.advance(0.1)
        assert heard == [TextDelta(text="You")]
        await clock.advance(10)
    assert len(heard) == 4


async def test_a_slow_answer_misses_its_deadline() -> None:
    clock = ManualClock()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("a", "b"), delay_s=11)], clock=clock)
    heard: list[LlmItem] = []
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_refused(llm, heard))
        await clock.advance(12)
    assert task.result() is ModelTimeout
    assert heard == []


async def test_a_gate_holds_the_answer_until_it_opens() -> None:
    gate = asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("a", "b"), gate=gate, gate_at=1)])
    stream = llm.stream(ask())
    assert await anext(stream) == TextDelta(text="a")
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(_next(stream.__anext__()))
        await asyncio.sleep(0)
        assert not waiting.done()
        gate.set()
    assert waiting.result() == TextDelta(text="b")
    await stream.aclose()
    assert llm.cancelled == 1


async def test_a_finished_answer_does_not_count_as_cancelled() -> None:
    llm = ScriptedLlm.echo()
    await answer_of(llm, ask())
    assert llm.cancelled == 0


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("fail:unavailable", ModelUnavailable),
        ("fail:rejected", ModelRejected),
        ("fail:timeout", ModelTimeout),
    ],
)
async def test_a_failing_spec_fails_every_time(spec: str, error: type[Exception]) -> None:
    llm = ScriptedLlm.from_spec(spec)
    for _ in range(2):
        with pytest.raises(error, match="on purpose"):
            await answer_of(llm, ask())


@pytest.mark.parametrize("spec", ["", "parrot", "echo:delay=soon", "echo:delay=-1", "fail:", "fail:often"])
def test_another_spec_is_refused_with_the_ones_that_exist(spec: str) -> None:
    with pytest.raises(ConfigurationError, match="echo:delay=SECONDS"):
        ScriptedLlm.from_spec(spec)


async def test_a_closed_fake_refuses() -> None:
    llm = ScriptedLlm.echo()
    await llm.close()
    with pytest.raises(ModelUnavailable, match="closed"):
        await answer_of(llm, ask())


def test_an_empty_chunk_is_refused_when_the_script_is_written() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        ScriptedAnswer(chunks=("a", ""))


@given(st.text())
def test_the_words_of_a_text_join_to_the_text(text: str) -> None:
    words = words_of(text)
    assert "".join(words) == text
    assert all(words)


async def _refused(llm: ScriptedLlm, heard: list[LlmItem]) -> type[BaseException]:
    with pytest.raises(ModelTimeout) as caught:
        await collect(llm, ask(timeout_s=10), heard)
    return caught.type


async def _next(item: object) -> object:
    return await item  # type: ignore[misc]  # the awaitable of an async generator's next item


async def test_a_script_in_a_file_answers_calls_and_fails(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    entries = [
        "plain words",
        {
            "text": "I look.",
            "calls": [{"name": "weather", "arguments": {"place": "Oslo"}}, {"name": "clock"}],
        },
        {"error": "timeout"},
    ]
    script.write_text(json.dumps(entries), encoding="utf-8")
    llm = ScriptedLlm.from_spec(f"file={script}")
    assert (await answer_of(llm, ask()))[0] == "plain words"
    heard: list[LlmItem] = []
    await collect(llm, ask(), heard)
    calls = [item.call for item in heard if isinstance(item, ToolAsked)]
    assert [(call.name, call.arguments) for call in calls] == [
        ("weather", '{"place": "Oslo"}'),
        ("clock", "{}"),
    ]
    assert len({call.id for call in calls}) == 2
    with pytest.raises(ModelTimeout, match="on purpose"):
        await answer_of(llm, ask())
    assert (await answer_of(llm, ask("and then")))[0] == "You said: and then"


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("{", "cannot be read"),
        ("{}", "no list"),
        ('["a", 7]', "answer 2"),
        ('[{"txet": "a"}]', "txet"),
        ('[{"error": "odd"}]', "odd"),
        ('[{"calls": [{}]}]', "name"),
    ],
)
def test_a_script_that_cannot_be_played_is_refused_in_words(tmp_path: Path, written: str, words: str) -> None:
    script = tmp_path / "script.json"
    script.write_text(written, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=words):
        ScriptedLlm.from_spec(f"file={script}")
