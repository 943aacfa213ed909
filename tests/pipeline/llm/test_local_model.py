"""The local model in a real child process: the real file, or a tiny one where only the process counts."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import SystemClock
from pipeline.domain.errors import ModelRejected, ModelTimeout, ModelUnavailable
from pipeline.llm.client import LlmItem, LlmRequest, TextDelta
from pipeline.llm.local_model import LocalModel
from pipeline.llm.local_process import ChildSettings
from pipeline.llm.structured import structured
from tests.pipeline.llm.asking import PLACE, answer_of, ask, collect, model_file, until
from tests.support.tiny_model import LETTER, tiny_model


@pytest.fixture
async def model() -> AsyncIterator[LocalModel]:
    local = LocalModel(ChildSettings(model_path=model_file()), clock=SystemClock())
    yield local
    await local.close()


@pytest.fixture
def tiny(tmp_path: Path) -> ChildSettings:
    """With a model that loads at once, for tests about the process alone."""
    return ChildSettings(model_path=tiny_model(tmp_path / "tiny.gguf"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def warm() -> AsyncIterator[LocalModel]:
    """One that has loaded, for the tests that leave it with a child that works, or that loads."""
    local = LocalModel(ChildSettings(model_path=model_file()), clock=SystemClock())
    await local.warm_up()
    yield local
    await local.close()


def capital_of(country: str) -> LlmRequest:
    """A question whose answer is one word: the model takes a tenth of a second for each further one."""
    return ask(f"The capital of {country}?", system="Answer in one word.")


async def test_a_question_that_arrives_before_the_model_is_loaded_is_answered(tiny: ChildSettings) -> None:
    model = LocalModel(tiny, clock=SystemClock())
    text, finished = await answer_of(model, ask(max_tokens=8))
    assert text == LETTER * 8
    assert finished.finish_reason == "length"
    assert finished.completion_tokens == 8
    assert model.status() == "ready"
    assert model.context_tokens == 4096
    await model.close()


@pytest.mark.models
@pytest.mark.asyncio(loop_scope="module")
async def test_a_cancelled_answer_stops_at_once_and_frees_the_model(warm: LocalModel) -> None:
    loop, model = asyncio.get_running_loop(), warm
    started = loop.time()
    await answer_of(model, capital_of("Spain"))
    alone = loop.time() - started
    long_answers = [model.stream(ask("Count from 1 to 500.", max_tokens=2000)) for _ in range(2)]
    for stream in long_answers:
        assert isinstance(await anext(stream), TextDelta)
    for stream in long_answers:
        await stream.aclose()

    started = loop.time()
    text, _ = await answer_of(model, capital_of("Italy"))
    assert "Rome" in text
    # Two thousand tokens are far more than ten short answers, however slow the machine is.
    assert loop.time() - started < 15 + 10 * alone, "both slots still generate what no one waits for"


@pytest.mark.models
@pytest.mark.crash
@pytest.mark.asyncio(loop_scope="module")
async def test_a_killed_child_fails_its_answer_and_the_next_question_finds_a_new_one(
    warm: LocalModel,
) -> None:
    model = warm
    await model.warm_up()
    first = model.child_pid
    assert first is not None
    heard: list[LlmItem] = []

    async def kill_after_the_first_word() -> None:
        await until(lambda: bool(heard))
        os.kill(first, signal.SIGKILL)

    async with asyncio.TaskGroup() as group:
        group.create_task(kill_after_the_first_word())
        with pytest.raises(ModelUnavailable, match="stopped in the middle of its answer"):
            await collect(model, ask("Count from 1 to 500.", max_tokens=2000), heard)

    text, finished = await answer_of(model, capital_of("France"))
    assert "Paris" in text
    assert finished.finish_reason == "stop"
    assert finished.prompt_tokens > 10
    assert finished.completion_tokens > 1
    assert model.status() == "ready"
    assert model.child_pid != first


@pytest.mark.crash
async def test_a_child_that_hangs_is_replaced_and_the_question_answered_by_the_next(
    tiny: ChildSettings,
) -> None:
    model = LocalModel(tiny, clock=SystemClock(), quiet_s=0.05, probe_s=2.0)
    await model.warm_up()
    hung = model.child_pid
    assert hung is not None
    os.kill(hung, signal.SIGSTOP)
    text, _ = await answer_of(model, ask())
    assert set(text) == {LETTER}
    assert model.child_pid != hung
    with pytest.raises(ProcessLookupError):
        os.kill(hung, 0)
    await model.close()


@pytest.mark.models
@pytest.mark.crash
@pytest.mark.asyncio(loop_scope="module")
async def test_two_timeouts_in_a_row_replace_a_child_whose_server_still_talks(warm: LocalModel) -> None:
    model = warm
    await model.warm_up()
    slow = model.child_pid
    for attempt in range(2):
        # To read so many words takes any processor longer, and none of them is read already.
        words = f"{attempt} and " + "one more word " * 400
        with pytest.raises(ModelTimeout):
            await answer_of(model, ask(words, timeout_s=0.1))
    async with asyncio.timeout(60):
        await until(lambda: model.child_pid not in (None, slow))


@pytest.mark.models
@pytest.mark.asyncio(loop_scope="module")
async def test_it_is_held_to_a_schema(warm: LocalModel) -> None:
    # Without the grammar it answers in a sentence.
    question = ChatMessage(role="user", content="Tell me a long story about the weather.")
    request = LlmRequest(messages=(question,), schema=PLACE, max_tokens=60, temperature=0.0, timeout_s=60)
    text, _ = await answer_of(warm, request)

    async def said(_messages: tuple[ChatMessage, ...]) -> str:
        return text

    found = await structured((), PLACE, said)
    assert found["kind"] in ("city", "river")


@pytest.mark.models
@pytest.mark.asyncio(loop_scope="module")
async def test_the_child_is_given_no_secret_of_the_gateways_environment(warm: LocalModel) -> None:
    await warm.warm_up()
    given = (await asyncio.to_thread(Path(f"/proc/{warm.child_pid}/environ").read_bytes)).split(b"\0")
    names = {entry.partition(b"=")[0] for entry in given if entry}
    assert names <= {b"PYTHONUTF8", b"PYTHONPATH", b"LC_CTYPE"}


@pytest.mark.crash
async def test_close_ends_the_child_and_refuses_in_words(tiny: ChildSettings) -> None:
    model = LocalModel(tiny, clock=SystemClock())
    await model.warm_up()
    pid = model.child_pid
    assert pid is not None
    await model.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(ModelUnavailable, match="shut down"):
        await answer_of(model, ask())


@pytest.mark.models
async def test_a_deadline_shorter_than_the_loading_is_kept(model: LocalModel) -> None:
    with pytest.raises(ModelTimeout, match=r"within 0\.1 seconds"):
        await answer_of(model, ask(timeout_s=0.1))


@pytest.mark.models
@pytest.mark.asyncio(loop_scope="module")
async def test_a_conversation_beyond_the_context_is_reported_as_such(warm: LocalModel) -> None:
    with pytest.raises(ModelRejected, match="does not fit"):
        await answer_of(warm, ask("word " * 6000))


async def test_a_missing_file_is_named_with_the_command_that_fetches_it(tmp_path: Path) -> None:
    missing = tmp_path / "absent.gguf"
    model = LocalModel(ChildSettings(model_path=missing), clock=SystemClock())
    await model.warm_up()
    for words in (model.status(), await _refusal(model)):
        assert str(missing) in words
        assert "parlour models get" in words
    await model.close()


async def test_a_file_that_is_no_model_is_refused_in_words(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")
    model = LocalModel(ChildSettings(model_path=broken), clock=SystemClock())
    with pytest.raises(ModelUnavailable, match="parlour models verify") as caught:
        await answer_of(model, ask())
    assert str(broken) in str(caught.value)
    assert "cannot be loaded" in model.status()
    await model.close()


async def test_restarts_are_limited_within_a_minute(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")
    model = LocalModel(ChildSettings(model_path=broken), clock=SystemClock(), restarts_per_minute=1)
    await model.warm_up()
    async with asyncio.timeout(20):
        await until(lambda: "stopped 1 times" in model.status())
    with pytest.raises(ModelUnavailable, match="trying again in") as caught:
        await answer_of(model, ask())
    assert caught.value.retry_after_s is not None
    assert 50 < caught.value.retry_after_s <= 60
    await model.close()


async def _refusal(model: LocalModel) -> str:
    with pytest.raises(ModelRejected) as caught:
        await answer_of(model, ask())
    return str(caught.value)
