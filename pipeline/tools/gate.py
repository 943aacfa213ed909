"""The gate in front of the tools: the order in which a proposed call is judged, executed and recorded.

`propose` and `_judged` read as one page: parse, action and hash, labels of the conversation, protected paths,
`action_started`, tiers, `shield_verdict`, audit, a person's answer, snapshot, hash, deny rules, flow and age
of the verdict again, execution, audit, `action_completed`. It has no code for single tools: the shield
decides (`pipeline.shield`), `execution` runs. Its work survives a crash: an approval is asked for once, and
an action that changes something is done once or reported as unknown.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pipeline.domain.chat import ToolCall, ToolDefinition
from pipeline.domain.clock import Clock
from pipeline.domain.events import ActionCompleted, ActionStarted, OtrBlocked, ShieldVerdict
from pipeline.graph.execution.step import EffectUnknown, current_step
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.approvals import Approvals
from pipeline.runtime.ports import EXECUTION, SkillBook, ToolResult
from pipeline.runtime.reading import Reading
from pipeline.runtime.scope import TurnScope
from pipeline.shield.audit_events import evaluated, event_of
from pipeline.shield.proposal import Proposal
from pipeline.shield.shield import Judgement, Shield
from pipeline.shield.verdict import Verdict
from pipeline.tools.action import Action, action_for, proposal_of
from pipeline.tools.arguments import BadArguments, check_arguments, parsed_arguments
from pipeline.tools.execution import NOT_DONE, RESULT_CHARS, Execution, ExecutionStopped
from pipeline.tools.execution_events import ExecutionEvents
from pipeline.tools.loading import LOAD_SKILLS, LOAD_TOOLS, Loading
from pipeline.tools.off_record import OTR_ANSWER, OTR_WORDS, allowed_off_the_record
from pipeline.tools.origins import Origins
from pipeline.tools.protection import Protection
from pipeline.tools.question import asked_words
from pipeline.tools.registry import ToolRegistry
from pipeline.tools.returned_files import ReturnedFiles
from pipeline.tools.sentences import sentence
from pipeline.tools.snapshots import WorkspaceSnapshots
from pipeline.tools.tool import Tool, ToolFailed

__all__ = ["RESULT_CHARS", "RegistryGate"]

_LOADED_CHARS = 200
"""The most of the line about loaded groups, which names them."""
_UNKNOWN = (
    "{name} was begun and cut off by a restart: it is unknown whether it was done. Do not repeat it by "
    "yourself; tell the user, and look whether it was done if you can."
)
_NOT_APPROVED: Final = {
    "refused": "The user did not allow {name}. Do not try it again; ask what they want instead.",
    "expired": "No one answered in time whether {name} may be used, so it was not done. Say so.",
    "too_many": "The user was asked too often within an hour, so {name} was not done. Say so.",
    "unattended": "No one can be asked now whether {name} may be used: it was not done. Say what you need.",
}
_ANSWERS: Final = {
    "refused": "You did not allow it, so nothing was done.",
    "expired": "No one allowed it in time, so nothing was done.",
    "too_many": "You have been asked too often within an hour, so nothing was done. Try again later.",
    "unattended": "No one could be asked, so nothing was done.",
}
_ALLOWED = ("allowed", "for_conversation")
_CHANGED = "integrity: the arguments of {name} were changed after they were judged; it was not done."
_AGAIN = (
    "{name} was not done. Its decision was too old, and now: {why}. Propose it again if it is still wanted."
)
_STALE = "integrity: {name} was not done: {why}. Propose it again."


class RegistryGate:
    """The `ToolGate` in front of a registry. One instance serves every turn.

    `protection`, `origins` and `snapshots` are None without a workspace; without `files`, tools' files are
    not sent. `timeout_s` limits one execution, without the time until a person has approved it.
    """

    def __init__(
        self,
        *,
        registry: ToolRegistry,
        shield: Shield,
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
        self._redactor = redactor or Redactor()
        self._registry = registry
        self._shield = shield
        self._approvals = approvals
        self._clock = clock
        self._protection = protection
        self._timeout_s = timeout_s
        self._loading = Loading(registry, skills, clock=clock, timeout_s=timeout_s)
        self._execution = Execution(
            clock=clock,
            timeout_s=timeout_s,
            redactor=self._redactor,
            origins=origins,
            files=files,
            snapshots=snapshots,
        )

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

    def reads_only(self, name: str) -> bool:
        """Whether every known tool of that name, or the loader of that name, changes nothing."""
        return name in (LOAD_TOOLS, LOAD_SKILLS) or self._registry.reads_only(name)

    async def group_of(self, name: str, groups: Sequence[str], scope: TurnScope) -> str:
        """The group among `groups` that has a tool of that name; empty for none. Raises ToolFailed."""
        tool = await self._tool(name, groups, scope)
        return tool.group

    async def close(self) -> None:
        """Close the groups: servers are stopped."""
        await self._registry.close()

    # -- the order ----------------------------------------------------------------------------
    async def propose(self, call: ToolCall, groups: Sequence[str], scope: TurnScope) -> ToolResult:
        """See `ToolGate.propose`."""
        if scope.depth == 0 and call.name in (LOAD_TOOLS, LOAD_SKILLS):
            loaded = await self._loading.load(call, scope)
            summary = self._redactor.line(loaded.summary, _LOADED_CHARS)
            return replace(loaded, content=self._execution.safe(loaded.content), summary=summary)
        try:
            arguments = parsed_arguments(call.arguments)
        except BadArguments as failure:
            return await self._not_begun(call.name, await self._expected(call, groups, scope, failure), scope)
        try:
            tool = await self._tool(call.name, groups, scope)
            check_arguments(tool.definition.parameters, arguments)
            action = action_for(call.id, _place(scope), tool, arguments)
        except (ToolFailed, ValueError) as failure:
            return await self._not_begun(call.name, str(failure), scope, NOT_DONE.format(why=failure))
        proposal = proposal_of(action, scope)
        begun = _was_begun(call, proposal, scope)
        if not begun and (objection := await self._path_objection(tool, arguments)):
            await self._shield.record(proposal, [event_of("action_blocked", proposal, reason="protected")])
            return await self._not_begun(tool.name, objection, scope, NOT_DONE.format(why=objection))
        summary = self._execution.line(sentence(tool, arguments, self._redactor))
        await scope.send(ActionStarted(**_ids(scope), tool_name=tool.name, summary=summary))
        # What an earlier process has done or begun is not judged again: a refusal now would be untrue.
        work = self._done(action, proposal, None, call, scope) if begun else None
        result = await (work or self._judged(action, proposal, call, scope))
        await self._completed(tool.name, result, scope)
        return result

    async def _judged(
        self, action: Action, proposal: Proposal, call: ToolCall, scope: TurnScope
    ) -> ToolResult:
        tool = action.tool
        if scope.mode == "otr" and not allowed_off_the_record(tool):
            words = OTR_WORDS.format(name=tool.name)
            await scope.send(OtrBlocked(**_ids(scope), reason=words))
            return self._execution.refusal(words, OTR_ANSWER)
        try:
            preview = "" if tool.preview is None else await tool.preview(action.payload, scope)
        except ToolFailed as failure:
            return self._execution.refusal(str(failure), NOT_DONE.format(why=failure))
        judgement = await self._shield.judge(proposal)
        verdict = judgement.verdict
        await self._send_verdict(verdict, tool, scope)
        # Both in one write, durable before all that follows: a decision that is not recorded has no effect.
        decided = [event_of("action_proposed", proposal), evaluated(proposal, verdict, judgement.labels)]
        await self._shield.record(proposal, decided)
        if verdict.decision == "BLOCK":
            why = verdict.reasoning
            answer = NOT_DONE.format(why=why.rstrip("."))
            return self._execution.refusal(f"{tool.name} was not done: {why}", answer)
        if verdict.decision == "ESCALATE":
            answer = await self._reviewed(action, proposal, judgement, call, scope, preview)
            if answer not in _ALLOWED:
                return self._execution.refusal(_NOT_APPROVED[answer].format(name=tool.name), _ANSWERS[answer])
            verdict = self._shield.approved(proposal, verdict)
        return await self._done(action, proposal, verdict, call, scope)

    async def _done(
        self, action: Action, proposal: Proposal, verdict: Verdict | None, call: ToolCall, scope: TurnScope
    ) -> ToolResult:
        """The result of an action; without a verdict that of an earlier process, and nothing is executed."""
        tool, events = action.tool, ExecutionEvents(self._shield, proposal)
        scope = replace(scope, reading=Reading(await self._shield.reader(proposal)))

        async def run() -> dict[str, Any]:
            # The snapshot is taken first, then the check is made, then the tool runs.
            kept = await self._execution.run(action, scope, check=check)
            events.add_end(kept)
            return kept

        async def check() -> None:
            # With the foreign text that the conversation holds by now.
            current = proposal
            if scope.foreign.sources != proposal.foreign:
                current = replace(proposal, foreign=scope.foreign.sources)
            await self._require_valid(action, current, verdict)

        try:
            if proposal.reads_only:
                # May be repeated: no record of the run is needed, and no wait for the disk.
                kept: Mapping[str, Any] = await run()
            else:
                kept = await _once(EXECUTION + call.id, run, scope, repeatable=False)
        except EffectUnknown:
            events.add("action_unknown")
            await events.written()
            return self._execution.refusal(_UNKNOWN.format(name=tool.name))
        if not proposal.reads_only:
            if not events.has_end:
                # The result is an earlier process's, or an earlier attempt's whose write may have failed.
                events.add_end(kept, again=True)
            await events.written()
        if kept.get("stopped"):
            return self._execution.refusal(kept["text"], NOT_DONE.format(why="it was stopped"))
        # Before the result is used: what the conversation has read is durable.
        read = scope.reading.names
        await self._shield.note_result(proposal, kept["text"], kept.get("foreign", ""), read)
        return self._execution.result(action, kept, scope)

    async def _require_valid(self, action: Action, proposal: Proposal, verdict: Verdict | None) -> None:
        """Raise ExecutionStopped if an allowed action may not be executed any more. Called right before it
        runs."""
        name = action.tool.name
        if verdict is None or not action.unchanged:
            raise ExecutionStopped("integrity", _CHANGED.format(name=name))
        if verdict.asked and (why := await self._path_objection(action.tool, action.payload)):
            # While a person was waited for, a link may have been put in the place of a file.
            raise ExecutionStopped("protected", f"{name} was not done: {why}.")
        reason, why = await self._shield.objection(proposal, verdict)
        if reason:
            raise ExecutionStopped(reason, f"{name} was not done: {why}.")
        if self._shield.is_too_old(verdict):
            verdict = await self._verdict_again(proposal, verdict)
        # Last, so that nothing above can take longer than a verdict holds, or change the arguments.
        if why := self._shield.problem(verdict, action.hash_now()):
            raise ExecutionStopped("integrity", _STALE.format(name=name, why=why))

    async def _verdict_again(self, proposal: Proposal, verdict: Verdict) -> Verdict:
        """The verdict in place of one that is too old, recorded. A person's answer counts if they would be
        asked again for the same reasons. Raises ExecutionStopped if the action is not allowed any more."""
        judgement = await self._shield.judge(proposal, again=True)
        again = judgement.verdict
        await self._shield.record(proposal, [evaluated(proposal, again, judgement.labels)])
        if again.decision == "ESCALATE" and again.reasoning == verdict.asked:
            return self._shield.approved(proposal, again)
        if again.decision != "ALLOW":
            raise ExecutionStopped(
                "judged_again", _AGAIN.format(name=proposal.tool, why=again.reasoning.rstrip("."))
            )
        return again

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

    # -- a person's answer --------------------------------------------------------------------
    async def _reviewed(
        self,
        action: Action,
        proposal: Proposal,
        judgement: Judgement,
        call: ToolCall,
        scope: TurnScope,
        preview: str,
    ) -> str:
        """A person's answer, as `Approvals.ask` returns it. Asked for once, also over crashes."""
        if scope.unattended:
            await self._shield.record(proposal, [event_of("action_answered", proposal, answer="unattended")])
            scope.unasked.append(self._execution.line(sentence(action.tool, action.payload, self._redactor)))
            return "unattended"

        async def ask() -> dict[str, str]:
            answer = await self._approvals.ask(
                scope,
                action_id=action.id,
                action_hash=action.hash,
                tool_name=action.tool.name,
                summary=action.summary,
                reasoning=asked_words(action, proposal, judgement, preview),
                can_last=self._shield.permissions.can_last(proposal, judgement.labels),
            )
            if answer == "for_conversation":
                await self._shield.permissions.give(proposal, judgement.labels)
                granted = event_of("rule_granted", proposal)
                await self._shield.record(proposal, [granted])
            return {"answer": answer, "hash": action.hash}

        kept = await _once(f"review:{call.id}", ask, scope, repeatable=True)
        # An answer holds only for the payload that was asked about; a changed call is refused.
        answer = str(kept["answer"]) if kept["hash"] == action.hash else "refused"
        if scope.depth == 0:
            # Stored in a separate write: in one write with the record that the action begins, a crash right
            # after it would be reported as an action that may have been done.
            await current_step().barrier()
        await self._shield.record(proposal, [event_of("action_answered", proposal, answer=answer)])
        return answer if answer in (*_ALLOWED, *_ANSWERS) else "refused"

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

    async def _path_objection(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        """Why the paths of the call are refused; empty if they are not."""
        if self._protection is None or not self._protection.concerns(tool, arguments):
            return ""
        return await asyncio.to_thread(self._protection.objection, tool, arguments)

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
        result = self._execution.refusal(words, answer)
        await self._completed(name, result, scope)
        return result

    async def _completed(self, name: str, result: ToolResult, scope: TurnScope) -> None:
        await scope.send(
            ActionCompleted(**_ids(scope), tool_name=name, success=result.success, summary=result.summary)
        )


async def _once(
    key: str, call: Callable[[], Awaitable[dict[str, Any]]], scope: TurnScope, *, repeatable: bool
) -> Mapping[str, Any]:
    """`call` as an effect of the running node. A sub-agent's calls are part of the effect that runs it, and
    are never resumed separately."""
    if scope.depth:
        return await call()
    kept: Mapping[str, Any] = await current_step().effect(key, call, repeatable=repeatable)
    return kept


def _was_begun(call: ToolCall, proposal: Proposal, scope: TurnScope) -> bool:
    """Whether an earlier process of this run has done the action, or begun it."""
    recorded = not proposal.reads_only and scope.depth == 0
    return recorded and current_step().was_begun(EXECUTION + call.id)


def _place(scope: TurnScope) -> str:
    """The scope in which a call's id is unique; random for a sub-agent, whose calls are never looked up."""
    step = current_step()
    own = secrets.token_hex(8) if scope.depth else ""
    return f"{scope.message_id}\n{step.run_id}\n{step.node}\n{step.execution}\n{own}"


def _ids(scope: TurnScope) -> dict[str, str]:
    return {"session_id": scope.session_id, "message_id": scope.message_id}
