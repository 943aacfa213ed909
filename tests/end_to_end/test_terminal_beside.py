"""A terminal beside a running gateway: its lines go over the web socket, and what comes back is printed.

Covers: gateway/cli/attached_chat.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from adapters.console.adapter import OPERATOR, THREAD, ConsoleAdapter, ConsoleOptions
from gateway.cli.attached_chat import Attachment
from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import SystemClock
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.messages import InboundMessage
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.file_reader import FakeFileReader
from tests.support.gate_graph import PROMPT, Ledger, gate_graph
from tests.support.harness import GatewayHarness, open_gateway
from voice.transcription.scripted_transcriber import ScriptedTranscriber

PAGE = ("channels.web.enabled=true", "server.port=0")


async def _lines(*typed: str) -> AsyncIterator[str]:
    for line in typed:
        yield line


async def _talk(
    harness: GatewayHarness,
    data: Path,
    *typed: str,
    interactive: bool = False,
    voice: str = "",
    files: tuple[Path, ...] = (),
    once_open: Callable[[], None] = lambda: None,
) -> str:
    """Type the lines into a separate terminal; what is in it at their end."""
    printed: list[str] = []
    settings = ConsoleOptions(interactive=interactive, history_lines=10 if interactive else 0)
    async with Attachment(harness.gateway.url, _token(data)) as attached:
        once_open()
        console = ConsoleAdapter(
            settings,
            attached,
            SystemClock(),
            lines=_lines(*typed),
            write=printed.append,
            voice_files=(Path(voice),) if voice else (),
            files=files,
        )
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            showing = group.create_task(attached.show(console))
            await console.run(attached.accept)
            showing.cancel()
    return "".join(printed)


def _nowhere(_text: str) -> None:
    """The output of a terminal that no one looks at."""


def _written(data: Path) -> list[str]:
    return [path.read_text() for path in data.glob("workspace/people/*/files/a.txt")]


def _token(data: Path) -> str:
    return (data / "web-token").read_text().strip()


async def test_a_second_terminal_continues_with_the_conversation_of_the_first(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, *PAGE) as harness:
        assert await _talk(harness, tmp_path, "hello", "again") == "You said: hello\nYou said: again\n"
        later = await _talk(harness, tmp_path, "third", interactive=True)
    assert later.startswith(
        "you: hello\nParlour: You said: hello\nyou: again\nParlour: You said: again\nyou: "
    )
    assert later.count("You said: third") == 1
    assert [one.content for one in harness.llm.requests[-1].messages if one.role == "user"] == [
        "hello",
        "again",
        "third",
    ]


async def test_a_command_and_a_recording_are_taken(tmp_path: Path) -> None:
    note = tmp_path / "note.ogg"
    note.write_bytes(b"OggS, for the scripted transcriber")
    transcriber = ScriptedTranscriber(["spoken words"])
    async with open_gateway(tmp_path / "data", *PAGE, transcriber=transcriber) as harness:
        shown = await _talk(harness, tmp_path / "data", "/help", voice=str(note))
    assert 'heard: "spoken words"\nYou said: spoken words\n' in shown
    assert "/stop: Stop the answer" in shown


async def test_the_files_of_the_command_line_go_with_the_first_line(tmp_path: Path) -> None:
    plan, missing = tmp_path / "plan.txt", tmp_path / "nothing.txt"
    plan.write_bytes(b"buy milk")
    async with open_gateway(tmp_path / "data", *PAGE, file_reader=FakeFileReader()) as harness:
        files = (plan, missing)
        shown = await _talk(harness, tmp_path / "data", "What is due?", "Thanks.", files=files)
        alone = await _talk(harness, tmp_path / "data", files=(plan,))
    assert f"the file {missing} cannot be read: No such file" in shown
    asked = [request.messages[-1].content for request in harness.llm.requests]
    assert [("buy milk" in text, text.partition("\n")[0]) for text in asked] == [
        (True, "What is due?"),
        (False, "Thanks."),
        (True, '[Attached: file "plan.txt"]'),
    ]
    assert "buy milk" in alone


async def test_a_tools_question_is_asked_with_its_choices_and_answered(tmp_path: Path) -> None:
    arguments = json.dumps({"path": "a.txt", "text": "hello"})
    calls = [
        ToolCall(id="l", name="load_tools", arguments='{"groups": ["files"]}'),
        ToolCall(id="c", name="write_file", arguments=arguments),
    ]
    llm = ScriptedLlm([*map(ScriptedAnswer.calling, calls), ScriptedAnswer.of("Done.")])
    async with open_gateway(tmp_path, *PAGE, llm=llm) as harness:
        shown = await _talk(harness, tmp_path, "write it down", "allow")
    assert "write_file needs your approval: " in shown
    assert "Type Allow, Deny or Allow for this conversation within " in shown
    assert shown.index("approval: Allow") < shown.index("Done.")
    assert _written(tmp_path) == ["hello"]


async def test_a_question_that_waits_is_asked_again_by_the_next_terminal(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    data = tmp_path / "data"
    async with open_gateway(data, *PAGE, graph=gate_graph(ledger)) as harness:
        await _talk(harness, data, "pay")
        shown = await _talk(harness, data, "deny")
    assert f"ask needs your approval: {PROMPT}\nType approve or deny.\n" in shown
    assert "pay: deny by owner" in shown
    assert ledger.lines() == ["prepare", "ask", "act deny"]


async def test_an_answer_that_a_closed_terminal_left_is_shown_by_the_next(tmp_path: Path) -> None:
    gate = asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("the whole ", "answer"), gate=gate), ScriptedAnswer.of("more")])
    async with open_gateway(tmp_path, *PAGE, llm=llm) as harness:
        async with Attachment(harness.gateway.url, _token(tmp_path)) as first, asyncio.TaskGroup() as group:
            console = ConsoleAdapter(
                ConsoleOptions(interactive=False), first, SystemClock(), lines=_lines(), write=_nowhere
            )
            await console.run(first.accept)
            showing = group.create_task(first.show(console))
            accepted = await first.accept(
                InboundMessage(
                    message_id="m_go",
                    native_id="go",
                    thread=THREAD,
                    author=OPERATOR,
                    received_at=0.0,
                    text="go",
                )
            )
            showing.cancel()
        assert accepted.status == "accepted"
        shown = await _talk(harness, tmp_path, "next", once_open=gate.set)
    assert shown.count("the whole answer\n") == 1
    assert shown.endswith("more\n")


async def test_what_is_said_in_another_window_is_shown_once(tmp_path: Path) -> None:
    printed: list[str] = []
    answered = asyncio.Event()

    def write(text: str) -> None:
        printed.append(text)
        if "You said: hello\n" in "".join(printed):
            answered.set()

    async with (
        open_gateway(tmp_path, *PAGE) as harness,
        Attachment(harness.gateway.url, _token(tmp_path)) as watching,
        asyncio.TaskGroup() as group,
    ):
        settings = ConsoleOptions(interactive=True)
        console = ConsoleAdapter(settings, watching, SystemClock(), lines=_lines(), write=write)
        await console.run(watching.accept)
        showing = group.create_task(watching.show(console))
        await _talk(harness, tmp_path, "hello")
        await answered.wait()
        showing.cancel()
    assert "".join(printed) == "you: \nyou: hello\nParlour: You said: hello\n"


async def test_a_wrong_token_is_refused_in_words(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, *PAGE) as harness:
        with pytest.raises(ConfigurationError, match="refuses this terminal: token: not the access token"):
            async with Attachment(harness.gateway.url, "wrong"):
                pass
