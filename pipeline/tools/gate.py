"""The gate in front of the tools: parse, judge, approve, execute and report every call.

In this order: parse, action and its hash, protected paths, `action_started`, verdict, approval, hash again,
execution, `action_completed`. It has no code for single tools. Its work survives a crash: an approval is
asked for once, and an action that changes something is done once or reported as unknown.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Any

from pipeline.domain.chat import ToolCall, ToolDefinition
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.events import ActionCompleted, ActionStarted, OtrBlocked, ShieldVerdict
from pipeline.domain.files import stored_file_from_plain, stored_file_to_plain
from pipeline.domain.marking import marked
from pipeline.graph.definition.frozen_json import thaw
from pipeline.graph.execution.step import EffectUnknown, current_step
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.ports import EXECUTION, Approvals, SkillBook, ToolResult
from pipeline.runtime.scope import TurnScope
from pipeline.tools.action import Action, action_for, asked_words
from pipeline.tools.arguments import BadArguments, check_arguments, parsed_arguments
from pipeline.tools.loading import LOAD_SKILLS, LOAD_TOOLS, Loading
from pipeline.tools.origins import SOURCES, Origins
from pipeline.tools.policy import OTR_ANSWER, OTR_WORDS, Policy, Verdict, allowed_off_the_record
from pipeline.tools.protection import Protection
from pipeline.tools.registry import ToolRegistry
from pipeline.tools.returned_files import ReturnedFiles
from pipeline.tools.sentences import sentence
from pipeline.tools.snapshots import WorkspaceSnapshots
from pipeline.tools.tool import Refused, Tool, ToolFailed, ToolOutput

_log = logging.getLogger(__name__)

RESULT_CHARS = 5_000
"""The most of one tool's result; a note gives the number of missing characters. (seed 0)"""
_SUMMARY_CHARS = 80
_LOADED_CHARS = 200
"""The most of the line about loaded groups, which names them."""
_UNKNOWN = (
    "{name} was begun and cut off by a restart: it is unknown whether it was done. Do not repeat it by "
    "yourself; tell the user, and look whether it was done if you can."
)
_NOT_APPROVED = {
    "refused": "The user did not allow {name}. Do not try it again; ask what they want instead.",
    "expired": "No one answered in time whether {name} may be used, so it was not done. Say so.",
}
_NOT_DONE = "That was not done: {why}."
_ANSWERS = {
    "refused": "You did not allow it, so nothing was done.",
    "expired": "No one allowed it in time, so nothing was done.",
}
_TIMED_OUT = "{name} did not finish within {seconds:g} seconds and was given up."
_TIMED_OUT_UNKNOWN = " It is unknown whether it was done."
_FAILED = "{name} failed for an internal reason. Continue without it."
_CHANGED = "integrity: the arguments of {name} were changed after they were judged; it was not done."


class Gate:
    """The `ToolGate` in front of a registry. One instance serves every turn.

    `protection`, `origins` and `snapshots` are None without a workspace; without `files`, tools' files are
    not sent.
    `timeout_s` limits one execution, without the time until a person has approved it.
    """

    def __init__(
        self,
        *,
        registry: ToolRegistry,
        approvals: Approvals,
        skills: SkillBook,
        clock: Clock,
        protection: Protection | None = None,
        timeout_s: float = 60.0,
        redactor: Redactor | None = None,
        origins: Origins | None = None,
        files: ReturnedFiles | None = None,
        snapshots: WorkspaceSnapshots | None = None,
    ) -> None:
        self._snapshots = snapshots
        self._redactor = redactor or Redactor()
        self._files = files
        self._origins = origins
        self._registry = registry
        self._approvals = approvals
        self._clock = clock
        self._protection = protection
        self._timeout_s = timeout_s
        self._policy = Policy(clock)
        self._loading = Loading(registry, skills, clock=clock, timeout_s=timeout_s)

    async def prepare(self, groups: Sequence[str], scope: TurnScope) -> None:
        """See `ToolGate.prepare`."""
        await self._loading.list_again(groups, scope)

    def offered(self, groups: Sequence[str], scope: TurnScope) -> tuple[ToolDefinition, ...]:
        """The tools of the loaded groups and, except for sub-agents, the loaders; off the record only tools
        that read."""
        tools = self._registry.loaded(groups, scope)
        if scope.mode == "otr":
            tools = tuple(tool for tool in tools if allowed_off_the_record(tool))
        loaders = self._loading.definitions(scope) if scope.depth == 0 else ()
        return (*loaders, *(tool.definition for tool in tools))

    async def propose(self, call: ToolCall, groups: Sequence[str], scope: TurnScope) -> ToolResult:
        """See `ToolGate.propose`."""
        if scope.depth == 0 and call.name in (LOAD_TOOLS, LOAD_SKILLS):
            loaded = await self._loading.load(call, scope)
            summary = self._redactor.line(loaded.summary, _LOADED_CHARS)
            return replace(loaded, content=self._safe(loaded.content), summary=summary)
        try:
            arguments = parsed_arguments(call.arguments)
        except BadArguments as failure:
            return await self._not_begun(call.name, await self._expected(call, groups, scope, failure), scope)
        try:
            tool = await self._tool(call.name, groups, scope)
            check_arguments(tool.definition.parameters, arguments)
            await self._protect(tool, arguments)
            action = action_for(call.id, _place(scope), tool, arguments)
        except (ToolFailed, ValueError) as failure:
            return await self._not_begun(call.name, str(failure), scope, _NOT_DONE.format(why=failure))
        await scope.send(
            ActionStarted(
                **_ids(scope),
                tool_name=tool.name,
                summary=self._line(sentence(tool, arguments, self._redactor)),
            )
        )
        result = await self._judged(action, call, scope)
        await self._completed(tool.name, result, scope)
        return result

    def reads_only(self, name: str) -> bool:
        """Whether every known tool of that name, or the loader of that name, changes nothing."""
        return name in (LOAD_TOOLS, LOAD_SKILLS) or self._registry.reads_only(name)

    async def close(self) -> None:
        """Close the groups: servers are stopped."""
        await self._registry.close()

    # -- before it begins ---------------------------------------------------------------------
    async def _tool(self, name: str, groups: Sequence[str], scope: TurnScope) -> Tool:
        try:
            async with self._clock.timeout(self._timeout_s):
                tool = await self._registry.find(name, groups, scope)
        except TimeoutError:
            raise ToolFailed(f"{name}: its server does not answer") from None
        if tool is not None:
            return tool
        group = self._registry.home_of(name, scope)
        if group and scope.depth == 0:
            raise ToolFailed(f'Unknown tool: {name}. Load it first: load_tools {{"groups": ["{group}"]}}')
        raise ToolFailed(f"Unknown tool: {name}")

    async def _protect(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        if self._protection is None or not self._protection.concerns(tool, arguments):
            return
        objection = await asyncio.to_thread(self._protection.objection, tool, arguments)
        if objection:
            raise Refused(objection)

    async def _expected(
        self, call: ToolCall, groups: Sequence[str], scope: TurnScope, failure: BadArguments
    ) -> str:
        try:
            tool = await self._tool(call.name, groups, scope)
        except ToolFailed:
            return str(failure)
        properties = tool.definition.parameters.get("properties", {})
        shape = ", ".join(f'"{name}": …' for name in properties)
        return f"{call.name} was not done: {failure}. Expected an object: {{{shape}}}"

    async def _not_begun(self, name: str, words: str, scope: TurnScope, answer: str = "") -> ToolResult:
        result = self._refusal(words, answer)
        await self._completed(name, result, scope)
        return result

    async def _completed(self, name: str, result: ToolResult, scope: TurnScope) -> None:
        await scope.send(
            ActionCompleted(**_ids(scope), tool_name=name, success=result.success, summary=result.summary)
        )

    # -- judged and done ----------------------------------------------------------------------
    async def _judged(self, action: Action, call: ToolCall, scope: TurnScope) -> ToolResult:
        tool = action.tool
        if scope.mode == "otr" and not allowed_off_the_record(tool):
            words = OTR_WORDS.format(name=tool.name)
            await scope.send(OtrBlocked(**_ids(scope), reason=words))
            return self._refusal(words, OTR_ANSWER)
        verdict = self._policy.judge(tool, scope)
        await self._send_verdict(verdict, tool, scope)
        if verdict.decision == "BLOCK":
            why = verdict.reasoning
            return self._refusal(f"{tool.name} was not done: {why}", _NOT_DONE.format(why=why.rstrip(".")))
        if verdict.decision == "ESCALATE":
            answer = await self._reviewed(action, call, scope)
            if answer != "allowed":
                return self._refusal(_NOT_APPROVED[answer].format(name=tool.name), _ANSWERS[answer])
        if not action.unchanged:
            return self._refusal(_CHANGED.format(name=tool.name))
        return await self._done(action, call, scope)

    async def _send_verdict(self, verdict: Verdict, tool: Tool, scope: TurnScope) -> None:
        await scope.send(
            ShieldVerdict(
                **_ids(scope),
                tool_name=tool.name,
                decision=verdict.decision,
                tier=verdict.tier,
                confidence=verdict.confidence,
                reasoning=verdict.reasoning,
            )
        )

    async def _reviewed(self, action: Action, call: ToolCall, scope: TurnScope) -> str:
        """A person's answer: `allowed`, `refused` or `expired`. Asked for once, also over crashes."""

        async def ask() -> dict[str, str]:
            answer = await self._approvals.ask(
                scope,
                action_id=action.id,
                action_hash=action.hash,
                tool_name=action.tool.name,
                summary=action.summary,
                reasoning=asked_words(action, scope.foreign.sources),
            )
            return {"answer": answer, "hash": action.hash}

        kept = await _once(f"review:{call.id}", ask, scope, repeatable=True)
        if scope.depth == 0:
            # Stored in a separate write: in one write with the record that the action begins, a crash right
            # after it would be reported as an action that may have been done.
            await current_step().barrier()
        # An answer holds only for the payload that was asked about; a changed call is refused.
        if kept["hash"] != action.hash or kept["answer"] not in ("allowed", "expired"):
            return "refused"
        return str(kept["answer"])

    async def _done(self, action: Action, call: ToolCall, scope: TurnScope) -> ToolResult:
        async def run() -> dict[str, Any]:
            return await self._executed(action, scope)

        tool = action.tool
        try:
            if tool.reads_only:
                # May be repeated: no record is needed, and no wait for the disk.
                kept: Mapping[str, Any] = await run()
            else:
                kept = await _once(EXECUTION + call.id, run, scope, repeatable=False)
        except EffectUnknown:
            return self._refusal(_UNKNOWN.format(name=tool.name))
        text = kept["text"]
        whole = "\n".join((text, *kept.get("lines", ())))
        content = marked(tool.name, whole) if kept["content"] else whole
        foreign = kept.get("foreign", "")
        scope.foreign.note(foreign)
        files = tuple(map(stored_file_from_plain, kept.get("files", ())))
        scope.files.note(files)
        return ToolResult(
            content=content,
            success=kept["success"],
            summary=self._line(text),
            foreign=foreign,
            answer=_answer(tool, text, success=kept["success"]),
            files=files,
        )

    async def _executed(self, action: Action, scope: TurnScope) -> dict[str, Any]:
        """The result as plain data; `content` says whether the text is the tool's and not the gate's."""
        tool = action.tool
        timeout_s = self._timeout_s if tool.timeout_s is None else tool.timeout_s
        deadline = self._clock.timeout(timeout_s)
        try:
            async with deadline, self._kept(action, scope):
                output = await self._run(action, scope)
        except ToolFailed as failure:
            # The message may quote a server: it is marked as data, like the server's results.
            failed = _ours(self._safe(str(failure))) | {"content": not tool.built_in}
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
        kept = {"text": self._fit(output), "success": output.success, "content": not tool.own_words}
        return kept | _foreign(tool, output.foreign) | await self._sent(output, scope)

    def _kept(self, action: Action, scope: TurnScope) -> AbstractAsyncContextManager[None]:
        """The files that the action changes are kept while it runs."""
        if self._snapshots is None or action.tool.reads_only:
            return nullcontext()
        return self._snapshots.around(action, scope)

    async def _sent(self, output: ToolOutput, scope: TurnScope) -> dict[str, Any]:
        """The references of the output's files, and the lines about them for the model."""
        if not output.files and not output.stored:
            return {}
        lines, stored = ["[Files cannot be sent here]"], list(output.stored)
        if self._files is not None:
            lines, new = await self._files.keep(output.files, scope)
            stored += new
        return {"lines": lines, "files": [stored_file_to_plain(file) for file in stored]}

    async def _run(self, action: Action, scope: TurnScope) -> ToolOutput:
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

    def _safe(self, words: str) -> str:
        """A text about a call, which may quote a server, redacted and cut for display."""
        return self._fit(ToolOutput(text=words))

    def _fit(self, output: ToolOutput) -> str:
        """The text without secrets, cut to `RESULT_CHARS`, with a note of how much is missing."""
        found = self._redactor.excerpt(output.text, RESULT_CHARS, is_cut=output.left_out > 0)
        # Lone surrogates can be neither stored nor sent.
        shown = found.text.encode("utf-8", "replace").decode()
        if found.whole:
            return shown
        missing = max(1, len(output.text) + output.left_out - len(found.text))
        return f"{shown}\n[{missing} more characters are not shown]"

    def _refusal(self, words: str, answer: str = "") -> ToolResult:
        safe = self._safe(words)
        return ToolResult(
            content=safe, success=False, summary=self._line(safe), answer=self._safe(answer) if answer else ""
        )

    def _line(self, text: str) -> str:
        return self._redactor.line(text, _SUMMARY_CHARS)


async def _once(
    key: str, call: Callable[[], Awaitable[dict[str, Any]]], scope: TurnScope, *, repeatable: bool
) -> Mapping[str, Any]:
    """`call` as an effect of the running node. A sub-agent's calls are part of the effect that runs it, and
    are never resumed separately."""
    if scope.depth:
        return await call()
    kept: Mapping[str, Any] = await current_step().effect(key, call, repeatable=repeatable)
    return kept


def _place(scope: TurnScope) -> str:
    """The scope in which a call's id is unique; random for a sub-agent, whose calls are never looked up."""
    step = current_step()
    own = secrets.token_hex(8) if scope.depth else ""
    return f"{scope.message_id}\n{step.run_id}\n{step.node}\n{step.execution}\n{own}"


def _ids(scope: TurnScope) -> dict[str, str]:
    return {"session_id": scope.session_id, "message_id": scope.message_id}


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
    return text if success else _NOT_DONE.format(why=text.rstrip("."))
