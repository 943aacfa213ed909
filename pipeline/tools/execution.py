"""Execute an action that may run: with a deadline, its result redacted, cut and labelled as data.

Not here: whether it may run (`gate`), and that it is done once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Any

from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.files import stored_file_from_plain, stored_file_to_plain
from pipeline.domain.marking import marked
from pipeline.graph.definition.frozen_json import thaw
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.ports import ToolResult
from pipeline.runtime.scope import TurnScope
from pipeline.tools.action import Action
from pipeline.tools.origins import SOURCES, Origins
from pipeline.tools.returned_files import ReturnedFiles
from pipeline.tools.snapshots import WorkspaceSnapshots
from pipeline.tools.tool import Tool, ToolFailed, ToolOutput

_log = logging.getLogger(__name__)

RESULT_CHARS = 5_000
"""The most of one tool's result; a note gives the number of missing characters."""
SUMMARY_CHARS = 80
NOT_DONE = "That was not done: {why}."
_TIMED_OUT = "{name} did not finish within {seconds:g} seconds and was given up."
_TIMED_OUT_UNKNOWN = " It is unknown whether it was done."
_LEFT_OUT = "[Left out: {count} that the security policy does not let be read without being named]"
_FAILED = "{name} failed for an internal reason. Continue without it."


class ExecutionStopped(ToolFailed):
    """The action may not be executed any more; the message says why, and `reason` names it in the audit."""

    code = "stopped"

    def __init__(self, reason: str, words: str) -> None:
        super().__init__(words)
        self.reason = reason


class Execution:
    """Runs tools. `timeout_s` limits one execution; without `files`, tools' files are not sent; `snapshots`
    keeps what a tool changes."""

    def __init__(
        self,
        *,
        clock: Clock,
        timeout_s: float,
        redactor: Redactor,
        origins: Origins | None,
        files: ReturnedFiles | None,
        snapshots: WorkspaceSnapshots | None,
    ) -> None:
        self._snapshots = snapshots
        self._clock = clock
        self._timeout_s = timeout_s
        self._redactor = redactor
        self._origins = origins
        self._files = files

    async def run(
        self, action: Action, scope: TurnScope, *, check: Callable[[], Awaitable[None]]
    ) -> dict[str, Any]:
        """The result as plain data; `content` says whether the text is the tool's and not the gate's. Every
        failure of the tool is a result; only StorageError and cancellation propagate.

        `check` is called when all is ready, right before the tool. If it raises ExecutionStopped, the tool
        is not run, and `stopped` has the reason.
        """
        tool = action.tool
        timeout_s = self._timeout_s if tool.timeout_s is None else tool.timeout_s
        deadline = self._clock.timeout(timeout_s)
        try:
            async with deadline, self._kept(action, scope):
                await check()
                output = await self._output(action, scope)
        except ExecutionStopped as stop:
            return _ours(self.safe(str(stop))) | {"stopped": stop.reason}
        except ToolFailed as failure:
            # The message may quote a server: it is marked as data, like the server's results.
            failed = _ours(self.safe(str(failure))) | {"content": not tool.built_in}
            return failed | _foreign(tool, "")
        except TimeoutError:
            if not deadline.expired():
                _log.exception("a tool failed", extra={"tool": tool.name})
                return _ours(_FAILED.format(name=tool.name))
            words = _TIMED_OUT.format(name=tool.name, seconds=timeout_s)
            return _ours(words if tool.reads_only else words + _TIMED_OUT_UNKNOWN)
        except StorageError:
            raise
        except Exception:  # noqa: BLE001 - a tool may raise anything, and the conversation continues
            _log.exception("a tool failed", extra={"tool": tool.name})
            return _ours(_FAILED.format(name=tool.name))
        if not output.text.strip():
            what = "no text" if output.files else "nothing"
            output = replace(output, text=f"{tool.name} returned {what}.")
        # Cut and redacted before it is recorded: a server may return megabytes, and keys.
        text = self._fit(output)
        if closed := scope.reading.left_out:
            text = f"{text}\n{_LEFT_OUT.format(count=closed)}"
        kept = {"text": text, "success": output.success, "content": not tool.own_words}
        return kept | _foreign(tool, output.foreign) | await self._sent(output, scope)

    def result(self, action: Action, kept: Mapping[str, Any], scope: TurnScope) -> ToolResult:
        """The result for the model and for people, from what `run` has returned, now or in an earlier
        process. Notes the foreign text and the files in the scope."""
        tool, text = action.tool, kept["text"]
        whole = "\n".join((text, *kept.get("lines", ())))
        content = marked(tool.name, whole) if kept["content"] else whole
        foreign = kept.get("foreign", "")
        scope.foreign.note(foreign)
        files = tuple(map(stored_file_from_plain, kept.get("files", ())))
        scope.files.note(files)
        return ToolResult(
            content=content,
            success=kept["success"],
            summary=self.line(text),
            foreign=foreign,
            answer=_answer(tool, text, success=kept["success"]),
            files=files,
        )

    def refusal(self, words: str, answer: str = "") -> ToolResult:
        """The result of an action that was not done: `words` for the model, `answer` for people."""
        safe = self.safe(words)
        return ToolResult(
            content=safe, success=False, summary=self.line(safe), answer=self.safe(answer) if answer else ""
        )

    def safe(self, words: str) -> str:
        """A text about a call, which may quote a server, redacted and cut for display."""
        return self._fit(ToolOutput(text=words))

    def line(self, text: str) -> str:
        """One redacted line for people."""
        return self._redactor.line(text, SUMMARY_CHARS)

    def _kept(self, action: Action, scope: TurnScope) -> AbstractAsyncContextManager[None]:
        """The files that the action changes are kept while it runs."""
        if self._snapshots is None or action.tool.reads_only:
            return nullcontext()
        return self._snapshots.around(action, scope)

    async def _output(self, action: Action, scope: TurnScope) -> ToolOutput:
        """Run the tool, and record in `origins` which items a turn with foreign text has written."""
        tool, owner, foreign = action.tool, scope.owner, bool(scope.foreign)
        if self._origins is None or tool.group not in SOURCES:
            return await tool.run(thaw(action.payload), scope)
        await asyncio.to_thread(self._origins.before, tool, action.payload, owner, foreign=foreign)
        output = await tool.run(thaw(action.payload), scope)
        await asyncio.to_thread(self._origins.after, tool, action.payload, owner, foreign=foreign)
        if not tool.reads_only:
            return output
        return replace(output, foreign=await asyncio.to_thread(self._origins.source, tool, owner))

    async def _sent(self, output: ToolOutput, scope: TurnScope) -> dict[str, Any]:
        """The references of the output's files, and the lines about them for the model."""
        if not output.files and not output.stored:
            return {}
        lines, stored = ["[Files cannot be sent here]"], list(output.stored)
        if self._files is not None:
            lines, new = await self._files.keep(output.files, scope)
            stored += new
        return {"lines": lines, "files": [stored_file_to_plain(file) for file in stored]}

    def _fit(self, output: ToolOutput) -> str:
        """The text without secrets, cut to `RESULT_CHARS`, with a note of how much is missing."""
        found = self._redactor.excerpt(output.text, RESULT_CHARS, is_cut=output.left_out > 0)
        # Lone surrogates can be neither stored nor sent.
        shown = found.text.encode("utf-8", "replace").decode()
        if found.whole:
            return shown
        missing = max(1, len(output.text) + output.left_out - len(found.text))
        return f"{shown}\n[{missing} more characters are not shown]"


def _foreign(tool: Tool, source: str) -> dict[str, str]:
    """The source of foreign text in a result. All results and errors of tools of others are foreign."""
    if not tool.built_in:
        kind, _, name = tool.group.partition(":")
        source = f"the MCP server {name}" if kind == "mcp" and name else f"the tool {tool.name}"
    return {"foreign": source} if source else {}


def _ours(words: str) -> dict[str, Any]:
    return {"text": words, "success": False, "content": False}


def _answer(tool: Tool, text: str, *, success: bool) -> str:
    """The answer text for people about a tool's result or failure; empty without one."""
    if not tool.answers:
        return ""
    return text if success else NOT_DONE.format(why=text.rstrip("."))
