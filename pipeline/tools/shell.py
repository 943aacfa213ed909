"""The group `shell`: run commands in a sandbox, in a folder of the conversation, and send its files.

Not here: the sandbox, which the host provides as a `CommandRunner`. A command has no network and sees none of
the machine's data. The gate judges it like every action that changes something.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from pipeline.domain.chat import ToolDefinition
from pipeline.domain.clock import Clock
from pipeline.domain.events import ActionProgress
from pipeline.domain.frozen import dataclass
from pipeline.domain.visible import visible_text
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.scope import TurnScope
from pipeline.tools.command_end import CommandEnd
from pipeline.tools.registry import FixedGroup
from pipeline.tools.sentences import built_in_sentence
from pipeline.tools.tool import Tool, ToolFailed, ToolFile, ToolOutput, tool_schema

SHELL = "shell"
PROGRESS_S = 2.0
"""The least time between two reports of a command's output."""
_SHOWN_CHARS = 3_800
"""Of the output; with the lines about the end it stays below the gate's limit for a result."""
_LINE_CHARS = 100
_NEWEST_BYTES = 2_000
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""What terminals understand as colours, cursor movements and titles."""

_WORD = {"type": "string", "maxLength": 10_000}
_COMMAND = {
    "type": "array",
    "items": _WORD,
    "minItems": 1,
    "maxItems": 200,
    "description": 'the program and its arguments, each as one text: ["sort", "-n", "numbers.txt"]',
}
_SCRIPT = {"type": "string", "minLength": 1, "maxLength": 20_000, "description": "a script for sh"}
_NAME = {"type": "string", "minLength": 1, "maxLength": 300, "description": "its path, such as plots/a.png"}
_CAPTION = {"type": "string", "maxLength": 500, "description": "a line shown with it"}
_ABOUT = (
    "in a sandbox without network, in the folder of this conversation, whose files stay there until the "
    "conversation ends. Returns the output and the exit status."
)

OnOutput = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The result of a command."""

    output: bytes
    """What it wrote to its output and its error output, in order."""
    end: CommandEnd


class CommandRunner(Protocol):
    """Runs commands in a sandbox, each in the folder of its turn's conversation."""

    @property
    def seconds(self) -> float:
        """The longest that a call may take, with waiting for others and keeping the files."""
        ...

    async def run(self, argv: Sequence[str], scope: TurnScope, on_output: OnOutput) -> CommandResult:
        """Run a program until it has ended with all that it started. `on_output` gets its output as it
        comes. Cancelling kills all of it. Raises ToolFailed if no command can be run now."""
        ...

    async def read(self, name: str, scope: TurnScope, most_bytes: int) -> bytes:
        """The content of a file in the folder of the conversation. Raises ToolFailed, and Refused for a
        path that leads outside."""
        ...


def shell_group(runner: CommandRunner, clock: Clock, redactor: Redactor, *, most_sent: int) -> FixedGroup:
    """The group over a runner. Files larger than `most_sent` bytes are not sent."""
    tools = _ShellTools(runner, clock, redactor, most_sent)
    command = Tool(
        definition=ToolDefinition(
            name="run_command",
            description=f"Run one program {_ABOUT}",
            parameters=tool_schema({"command": _COMMAND}),
        ),
        group=SHELL,
        run=tools.run_command,
        timeout_s=runner.seconds,
        describe=lambda arguments: shlex.join(arguments["command"]),
    )
    script = Tool(
        definition=ToolDefinition(
            name="run_script",
            description=f"Run a shell script {_ABOUT}",
            parameters=tool_schema({"script": _SCRIPT}),
        ),
        group=SHELL,
        run=tools.run_script,
        timeout_s=runner.seconds,
    )
    send = Tool(
        definition=ToolDefinition(
            name="send_command_file",
            description="Send a file that a command has left in the folder of this conversation to the "
            "person, with your answer.",
            parameters=tool_schema({"name": _NAME}, {"caption": _CAPTION}),
        ),
        group=SHELL,
        run=tools.send,
        # Only the chat whose folder it is gets it.
        reads_only=True,
        answers=True,
    )
    return FixedGroup(
        name=SHELL,
        description="run programs and shell scripts in a sandbox, and send the files that they make",
        fixed=(command, script, send),
    )


class _ShellTools:
    def __init__(self, runner: CommandRunner, clock: Clock, redactor: Redactor, most_sent: int) -> None:
        self._runner = runner
        self._clock = clock
        self._redactor = redactor
        self._most_sent = most_sent

    async def run_command(self, arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        words = built_in_sentence("run_command", arguments, self._redactor)
        return await self._run(arguments["command"], words, "run_command", scope)

    async def run_script(self, arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        words = built_in_sentence("run_script", arguments, self._redactor)
        return await self._run(("sh", "-c", arguments["script"]), words, "run_script", scope)

    async def send(self, arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        name = arguments["name"]
        try:
            data = await self._runner.read(name, scope, self._most_sent)
        except ToolFailed as failure:
            raise type(failure)(f"{name}: {failure}") from None
        file = ToolFile(data=data, name=name, caption=arguments.get("caption", ""))
        return ToolOutput(text=f"Here is {name}.", files=(file,))

    async def _run(self, argv: Sequence[str], words: str, tool: str, scope: TurnScope) -> ToolOutput:
        if any("\0" in word for word in argv):
            raise ToolFailed("a command must not contain a NUL character")
        progress = _Progress(scope, tool, words, self._clock, self._redactor)
        result = await self._runner.run(argv, scope, progress.note)
        if result.end.problem:
            raise ToolFailed(f"{argv[0]}: {result.end.problem}")
        shown = self._shown(result.output)
        text = f"{result.end.words}\n\n{shown}" if shown else f"{result.end.words}\nIt wrote nothing."
        return ToolOutput(text=text, success=result.end.success)

    def _shown(self, output: bytes) -> str:
        """The output without secrets; of a long one the beginning and the end."""
        # Before it is cut: half a secret would not be recognised.
        text = self._redactor.text(readable(output)).rstrip("\n")
        left_out = len(text) - _SHOWN_CHARS
        if left_out <= 0:
            return text
        half = _SHOWN_CHARS // 2
        return f"{text[:half]}\n[{left_out} characters are left out here]\n{text[-half:]}"


class _Progress:
    """Reports the newest line of a command's output now and then."""

    def __init__(self, scope: TurnScope, tool: str, words: str, clock: Clock, redactor: Redactor) -> None:
        self._scope = scope
        self._tool = tool
        self._words = words
        self._clock = clock
        self._redactor = redactor
        self._newest = b""
        self._not_before = clock.monotonic() + PROGRESS_S

    async def note(self, data: bytes) -> None:
        """Take some output, and report its last whole line if enough time has passed."""
        self._newest = (self._newest + data)[-_NEWEST_BYTES:]
        now = self._clock.monotonic()
        if now < self._not_before:
            return
        self._not_before = now + PROGRESS_S
        lines = [line for line in readable(self._newest.rpartition(b"\n")[0]).splitlines() if line.strip()]
        if lines:
            event = ActionProgress(
                session_id=self._scope.session_id,
                message_id=self._scope.message_id,
                tool_name=self._tool,
                summary=self._words,
                line=self._redactor.line(lines[-1], _LINE_CHARS),
            )
            await self._scope.send(event)


def readable(output: bytes) -> str:
    """The output as text: without the escapes of terminals, and with a mark for each byte that is none."""
    return visible_text(_ESCAPES.sub("", output.decode("utf-8", "replace")))
