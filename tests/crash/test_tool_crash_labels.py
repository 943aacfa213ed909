"""Death around a tool's effect: done at most once, asked for once, and what no one knows is said."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from tests.support.gateway_process import KILLED, GatewayProcess, up
from tests.support.openai_server import FakeOpenAiServer
from tests.support.platforms.platform import Fault, Shown
from tests.support.platforms.telegram import FakeTelegram
from tests.support.store_file import integrity, open_runs, stored_messages
from tests.support.tool_talk import (
    ASKED,
    Kind,
    executions,
    outcome,
    questions,
    think,
    tool_settings,
    wish,
)
from tests.support.web_client import Disconnected, Frame, WebChat

pytestmark = pytest.mark.crash

_CRASHED = 137
_NAME = "n1"


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    async with FakeOpenAiServer(brain=think) as model:
        settings = tool_settings(model.api_base, tmp_path)
        async with GatewayProcess(tmp_path, overrides=settings) as gateway:
            yield gateway


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """Where the process dies, and what becomes of the tool's work."""

    kind: Kind
    at: str
    done: int = 1
    """How often it is done in the end."""
    said: Literal["done", "unknown"] = "done"
    asked: tuple[int, int] = (0, 0)
    """How many questions are shown before the death, and after it."""


_DEATHS = (
    Death(kind="remind", at="effect-begun-before:1"),
    Death(kind="remind", at="effect-begun-after:1", done=0, said="unknown"),
    Death(kind="remind", at="effect-done-before:1", said="unknown"),
    Death(kind="remind", at="effect-done-after:1"),
    Death(kind="remind", at="turn-commit-before:1"),
    Death(kind="remind", at="turn-commit-after:1"),
    Death(kind="sum", at="turn-commit-before:1", done=0),
    # A person is asked in the first effect, and the tool works in the second. The message was taken in by
    # the first commit of the inbox, and its answer by the second.
    Death(kind="file", at="effect-begun-after:1", asked=(0, 1)),
    Death(kind="file", at="inbox-commit-before:2", asked=(1, 1)),
    Death(kind="file", at="inbox-commit-after:2", asked=(1, 0)),
    # Allowed, and not on record as begun: it is done, and no one is asked again.
    Death(kind="file", at="effect-done-before:1", asked=(1, 0)),
    Death(kind="line", at="effect-done-before:1", asked=(1, 0)),
    Death(kind="line", at="effect-done-after:1", asked=(1, 0)),
    Death(kind="line", at="effect-begun-before:2", asked=(1, 0)),
    # It is on record that it begins: no one can tell this death from one behind the effect.
    Death(kind="line", at="effect-begun-after:2", done=0, said="unknown", asked=(1, 0)),
    Death(kind="line", at="effect-done-before:2", said="unknown", asked=(1, 0)),
)


@pytest.mark.parametrize("death", _DEATHS, ids=lambda death: f"{death.kind} {death.at}")
async def test_what_a_tool_did_is_done_once_and_reported_so(gateway: GatewayProcess, death: Death) -> None:
    async with WebChat() as chat:
        await gateway.start(crash_at=death.at)
        opening = await chat.connect(gateway.url, gateway.token)
        await chat.send_text("c1", wish(death.kind, _NAME))
        asked = await _read_on(chat, opening, until=lambda: False)
        assert await gateway.wait_exit() == _CRASHED

        await gateway.start()
        opening = await chat.connect(gateway.url, gateway.token)
        await chat.send_text("c1", wish(death.kind, _NAME))
        asked_again = await _read_on(
            chat, opening, until=lambda: any(one.role == "assistant" for one in chat.seen.lines)
        )
        assert (len(asked), len(asked_again)) == death.asked
        assert len(asked | asked_again) == (death.kind in ASKED)
        await _check(gateway, chat, death)


async def test_a_question_that_is_open_when_the_process_is_killed_is_asked_and_answered_once(
    gateway: GatewayProcess,
) -> None:
    async with WebChat() as chat:
        await gateway.start()
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("c1", wish("file", _NAME))
        first = await chat.wait_for(_is_question)
        await gateway.kill()
        assert gateway.returncode == KILLED
        assert questions(gateway.store_path) == [(chat.seen.accepted["c1"], None)]

        await gateway.start()
        opening = await chat.connect(gateway.url, gateway.token)
        # Asked before the socket was open, it is among what the socket opens with.
        again = next(filter(_is_question, opening), None) or await chat.wait_for(_is_question)
        question = again["event"]["interaction_id"]
        assert question == first["event"]["interaction_id"]
        await chat.send_approval("yes", question, "Allow")
        await chat.send_approval("late", question, "Deny")
        message_id = await chat.accepted("c1")
        await chat.answer(message_id)
        while not chat.seen.problems:
            await chat.receive()
        assert [problem["client_id"] for problem in chat.seen.problems] == ["late"]
        await _check(gateway, chat, Death(kind="file", at=""))


async def test_a_question_on_telegram_appears_once_though_the_process_dies_before_it_is_on_record(
    tmp_path: Path,
) -> None:
    async with FakeOpenAiServer(brain=think) as model, FakeTelegram() as telegram:
        settings = [*tool_settings(model.api_base, tmp_path), *telegram.overrides(tmp_path)]
        settings.append("channels.telegram.previews=false")
        ann = telegram.person("ann")
        chat = telegram.private_chat(ann)

        def asked() -> list[Shown]:
            return [one for one in telegram.visible(chat) if "write_file asks" in one.text]

        async with GatewayProcess(tmp_path, overrides=settings) as gateway:
            await gateway.start()
            await up(gateway, "telegram")
            # Telegram shows the question, and the process does not live to hear of it.
            telegram.faults.script.append(Fault(method="sendMessage", kind="hang"))
            await telegram.say(chat, ann, wish("file", _NAME))
            await telegram.until(lambda: len(asked()) == 1)
            (first,) = asked()
            await gateway.kill()

            await gateway.start()
            await telegram.until(lambda: any(call.method == "deleteMessage" for call in telegram.calls))
            assert [one.native_id for one in asked()] == [first.native_id]
            await telegram.press(chat, ann, first.native_id, "Allow")
            await telegram.until(
                lambda: any(_NAME in text and "written" in text for text in telegram.bot_texts(chat))
            )
            # The press takes the buttons away; the words come by a separate edit.
            await telegram.until(lambda: ["Answered: Allow" in one.text for one in asked()] == [True])
            assert not any(one.buttons for one in telegram.visible(chat))
            assert await gateway.stop() == 0
            assert executions(tmp_path, gateway.store_path)[_NAME] == 1


async def _read_on(chat: WebChat, opening: list[Frame], *, until: Callable[[], bool]) -> set[str]:
    """Read on from what the socket opened with until something is so, or the socket is closed, and allow what
    is asked; the questions."""
    asked: set[str] = set()
    frames = list(opening)
    try:
        while frames or not until():
            frame = frames.pop(0) if frames else await chat.receive()
            if _is_question(frame) and (question := frame["event"]["interaction_id"]) not in asked:
                asked.add(question)
                await chat.send_approval(f"yes-{question}", question, "Allow")
    except Disconnected:
        pass
    return asked


async def _check(gateway: GatewayProcess, chat: WebChat, death: Death) -> None:
    """After an orderly end: one answer, which says what became of the tool's work, and nothing left open."""
    message_id = chat.seen.accepted["c1"]
    assert await gateway.stop() == 0
    assert integrity(gateway.store_path) == "ok"
    answer = await chat.answer(message_id)
    assert outcome(death.kind, _NAME, answer.text) == death.said
    stored = stored_messages(gateway.store_path)
    assert set(stored) == {message_id}
    assert stored[message_id].outcome == "answered"
    assert (stored[message_id].user_records, stored[message_id].assistant_records) == (1, 1)
    assert [state for state, _ in stored[message_id].outbox] == ["sent"]
    assert open_runs(gateway.store_path) == []
    assert executions(gateway.folder, gateway.store_path).total() == death.done
    asked = [(message_id, "Allow")] if death.kind in ASKED else []
    assert questions(gateway.store_path) == asked


def _is_question(frame: Frame) -> bool:
    return bool(frame["type"] == "event" and frame["event"]["type"] == "approval_required")
