"""The tools of the group `shell` before a runner that does not run anything.

Covers: pipeline/tools/shell.py, pipeline/tools/command_end.py, pipeline/tools/sentences.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.events import ActionProgress, ActionStarted
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.scope import TurnScope
from pipeline.tools.command_end import CommandEnd, Ending
from pipeline.tools.registry import FixedGroup
from pipeline.tools.shell import CommandResult, OnOutput, readable, shell_group
from pipeline.tools.tool import ToolFailed
from tests.support.contexts import Watched
from tests.support.contexts import scope as scope_for
from tests.support.tables import each
from tests.support.tool_gate import Person, call, gate, propose

KEY = "sk-proj-" + "a1B2" * 12


@dataclass(slots=True)
class FixedRunner:
    """Returns a fixed result, and passes its output on in the given parts."""

    clock: ManualClock
    end: CommandEnd = field(default_factory=lambda: CommandEnd(ending="exit", seconds=0.5))
    parts: Sequence[bytes] = (b"done\n",)
    each_s: float = 1.0
    files: dict[str, bytes] = field(default_factory=dict)
    ran: list[Sequence[str]] = field(default_factory=list)
    seconds: float = 90.0

    async def run(self, argv: Sequence[str], scope: TurnScope, on_output: OnOutput) -> CommandResult:
        del scope
        self.ran.append(argv)
        for part in self.parts:
            await self.clock.advance(self.each_s)
            await on_output(part)
        return CommandResult(output=b"".join(self.parts), end=self.end)

    async def read(self, name: str, scope: TurnScope, most_bytes: int) -> bytes:
        del scope, most_bytes
        if name not in self.files:
            raise ToolFailed("there is no such file")
        return self.files[name]


def _group(runner: FixedRunner) -> FixedGroup:
    return shell_group(runner, runner.clock, Redactor(), most_sent=1_000)


async def _result(runner: FixedRunner, tool: str = "run_script", **arguments: object) -> str:
    clock = runner.clock
    before = gate(_group(runner), person=Person(), clock=clock)
    (result,) = await propose(
        before, call(tool, arguments or {"script": "x"}), scope=scope_for(Watched()), groups=("shell",)
    )
    return result.content


async def test_a_person_is_asked_with_the_whole_command() -> None:
    runner, person, watched = FixedRunner(clock=ManualClock()), Person("refused"), Watched()
    before = gate(_group(runner), person=person)
    command = ["sh", "-c", "echo a; rm -rf b"]
    (result,) = await propose(
        before, call("run_command", {"command": command}), scope=scope_for(watched), groups=("shell",)
    )
    assert not result.success
    assert runner.ran == []
    assert 'Command: ["sh", "-c", "echo a; rm -rf b"]' in person.asked[0]["words"]
    assert person.asked[0]["summary"] == "sh -c 'echo a; rm -rf b'"
    (started,) = [one for one in watched.events if isinstance(one, ActionStarted)]
    assert started.summary == "Running the command “sh -c echo a; rm -rf b”"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"command": []}, "command"),
        ({"command": "ls"}, "command"),
        ({"command": ["ls", "a\0b"]}, "NUL"),
        ({"command": ["ls"], "cwd": "/"}, "cwd"),
    ],
)
async def test_a_command_that_is_none_is_refused_with_the_reason(
    arguments: dict[str, object], words: str
) -> None:
    runner = FixedRunner(clock=ManualClock())
    assert words in await _result(runner, "run_command", **arguments)
    assert runner.ran == []


@each(
    "end, words",
    [
        (CommandEnd(ending="exit", status=2, seconds=1.5), "Exit status 2 after 1.5 seconds."),
        (CommandEnd(ending="signal", status=11), "Ended by signal 11 (Segmentation fault)"),
        (CommandEnd(ending="time", seconds=60), "longer than allowed (tools.shell.seconds)"),
        (CommandEnd(ending="memory"), "more memory than allowed"),
        (CommandEnd(ending="output"), "more output than allowed"),
        (CommandEnd(ending="processor"), "more processor time than allowed"),
        (CommandEnd(ending="broken"), "Its sandbox ended unexpectedly"),
        (CommandEnd(ending="exit", left_running=3), "3 processes were still running"),
        (CommandEnd(ending="exit", disk_full=True), "disk of the conversation is full"),
        (CommandEnd(ending="exit", unkept="too large"), "not kept: too large"),
        (CommandEnd(ending="exit", files=(("a.txt", 3),)), "New or changed files: a.txt (3 bytes)"),
        (CommandEnd(ending="not_found"), "no such program"),
        (CommandEnd(ending="not_started", unkept="no space"), "could not be prepared: no space"),
    ],
)
async def test_the_result_says_how_a_command_ended(end: CommandEnd, words: str) -> None:
    assert words in await _result(FixedRunner(clock=ManualClock(), end=end))


@pytest.mark.parametrize(("ending", "status"), [("exit", 1), ("time", 9), ("signal", 9), ("broken", 0)])
async def test_only_exit_status_0_is_a_success(ending: Ending, status: int) -> None:
    assert CommandEnd(ending="exit").success
    assert not CommandEnd(ending=ending, status=status).success


async def test_output_is_reported_at_most_every_two_seconds_by_its_last_whole_line() -> None:
    parts = (b"one\n", b"two\nthr", b"ee\n", b"\n \n", b"half", f" {KEY}\nrest".encode(), b"\n")
    runner, watched = FixedRunner(clock=ManualClock(), parts=parts), Watched()
    before = gate(_group(runner), clock=runner.clock)
    await propose(before, call("run_script", {"script": "x"}), scope=scope_for(watched), groups=("shell",))
    shown = [one.line for one in watched.events if isinstance(one, ActionProgress)]
    assert shown[:2] == ["two", "three"]
    assert shown[2].startswith("half sk-p")
    assert KEY not in shown[2]
    assert len(shown) == 3


async def test_of_long_output_the_model_sees_both_ends_and_no_part_of_a_secret() -> None:
    long = b"first\n" + b"x" * 1_880 + KEY.encode() + b"y" * 4_000 + b"\nlast\n"
    content = await _result(FixedRunner(clock=ManualClock(), parts=(long,)))
    assert "first\n" in content
    assert "\nlast" in content
    assert "characters are left out here" in content
    assert KEY[8:20] not in content


def test_output_becomes_text_without_the_escapes_of_terminals() -> None:
    output = b"\x1b]0;title\x07\x1b[1;31mred\x1b[0m \xff\x00\x1b[2K\rnext\ttab\n"
    assert readable(output) == "red \ufffd\nnext\ttab\n"


async def test_a_file_is_sent_without_asking_and_a_missing_one_is_named() -> None:
    runner = FixedRunner(clock=ManualClock(), files={"a.png": b"picture"})
    person = Person("refused")
    before = gate(_group(runner), person=person)
    sent, missing = await propose(
        before,
        call("send_command_file", {"name": "a.png"}),
        call("send_command_file", {"name": "b.png"}, call_id="2"),
        scope=scope_for(Watched()),
        groups=("shell",),
    )
    assert sent.success
    assert person.asked == []
    assert missing.content == "b.png: there is no such file"


async def test_a_call_may_take_as_long_as_the_runner_says() -> None:
    tools = {tool.name: tool for tool in _group(FixedRunner(clock=ManualClock())).fixed}
    assert tools["run_script"].timeout_s == tools["run_command"].timeout_s == 90.0
    assert not any(tools[name].reads_only or tools[name].own_only for name in ("run_script", "run_command"))
