"""The nodes of a workflow's graph other than agents: start, if, approval, and what shows the result.

Every node writes `trail`: what the public record of the run tells about it (`run_record`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pipeline.agent.sent_files import SENDS
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import NodeResult, Pause, State
from pipeline.graph.definition.reducers import Channel, append, custom
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.spec import END, NodeSpec
from pipeline.graph.run.records import TRAIL
from pipeline.nodes.failures import ConditionFailed
from pipeline.nodes.intake_steps import MESSAGE
from pipeline.runtime.context import RunContext
from pipeline.workflows import document as places
from pipeline.workflows.document import DECISIONS, EDIT, NOTE, If, Start, WorkflowApproval, filled

PREVIOUS: Final = "previous"
"""The state's key for the output of the node before, in this branch."""
HANDLE: Final = "handle"
"""The state's key for the handle that an if has chosen."""
SOURCES: Final = "sources"
"""The state's key for where foreign text that the run has read came from."""
FIRST: Final = "first"
"""The state's key for whether the previous output is still what the person sent."""
ONCE: Final = RetryPolicy(max_attempts=1)
_REVIEWED_CHARS = 3_000
"""Of the previous output in the question of an approval."""
_ENDED = "ended"


def _joined(value: Mapping[str, Any], new: Mapping[str, Any]) -> Mapping[str, Any]:
    if value.get("status") == _ENDED:
        return new
    if new.get("status") == _ENDED:
        return value
    answers = (value.get("answer", ""), new.get("answer", ""))
    return {**new, "answer": "\n\n".join(answer for answer in answers if answer)}


ANSWER: Final[Channel] = custom("workflow_answer", _joined)
"""How the results of branches combine to one answer, in the order in which they end. What an ended workflow
says counts only where no branch has a result."""
CHANNELS: Final[Mapping[str, Channel]] = {"agent": ANSWER, SOURCES: append, SENDS: append}


def entry(context: RunContext, kind: str, content: str | None = None) -> dict[str, Any]:
    """A log entry of a node, now."""
    found: dict[str, Any] = {"at": context.clock.now(), "type": kind}
    return found if content is None else {**found, "content": content}


def start_node(start: Start, workflow: str) -> NodeSpec[RunContext]:
    """Begins a run."""
    return NodeSpec(
        run=_Start(start=start, workflow=workflow),
        writes=(PREVIOUS, FIRST, SOURCES, TRAIL, "agent"),
        retry=ONCE,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    start: Start
    workflow: str

    async def __call__(self, state: State, context: RunContext) -> NodeResult:
        message = str(state.get(MESSAGE, ""))
        given = self.start.initial_input
        output = filled(given, {places.MESSAGE: message}) if given else message
        log = [entry(context, "step_start"), entry(context, "start_prompt", output)]
        ended = {"status": _ENDED, "answer": f"The workflow {self.workflow} has ended."}
        first = not given or places.MESSAGE in places.places(given)
        trail = {"node": self.start.id, "log": log, "output": output}
        update = {PREVIOUS: output, FIRST: first, SOURCES: [], TRAIL: trail, "agent": ended}
        return NodeResult(update=update)


def if_node(node: If) -> NodeSpec[RunContext]:
    """Writes the handle of the first condition that matches the previous output."""
    return NodeSpec(run=_If(node=node), writes=(HANDLE, TRAIL), retry=ONCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _If:
    node: If

    async def __call__(self, state: State, context: RunContext) -> NodeResult:
        text = str(state.get(PREVIOUS, ""))
        log = [entry(context, "step_start")]
        for at, condition in enumerate(self.node.conditions):
            matches = condition.matches(text)
            words = f'Condition {at + 1} ({condition.operator} "{condition.value}")'
            log.append(entry(context, "logic_check", f"{words} evaluated as {str(matches).lower()}"))
            if matches:
                break
        trail = {"node": self.node.id, "log": log}
        return NodeResult(update={HANDLE: self.node.handle(text), TRAIL: trail})


def approval_node(node: WorkflowApproval, labels: Mapping[str, str]) -> NodeSpec[RunContext]:
    """Asks a person and waits. `labels` are the names in the graph of all approvals."""
    return NodeSpec(run=_Approval(node=node, labels=labels), writes=(TRAIL,), goes_to=(), retry=ONCE)


def values_of(state: State, labels: Mapping[str, str]) -> dict[str, str]:
    """The values for the places of a text: the previous output, the message, and the notes of the approvals
    that were answered. `labels` are the names in the graph of all approvals."""
    answers = state.get("answers", {})
    notes = {
        f"{NOTE}{name}": str(answers[label].get("note", ""))
        for name, label in labels.items()
        if label in answers and answers[label].get("choice") != EDIT
    }
    return {
        places.PREVIOUS: str(state.get(PREVIOUS, "")),
        places.MESSAGE: str(state.get(MESSAGE, "")),
        **notes,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Approval:
    asks_a_person: ClassVar[bool] = True
    node: WorkflowApproval
    labels: Mapping[str, str]

    async def __call__(self, state: State, context: RunContext) -> NodeResult:
        values = {name: _short(value) for name, value in values_of(state, self.labels).items()}
        prompt, previous = filled(self.node.prompt, values), values[places.PREVIOUS]
        if places.PREVIOUS not in places.places(self.node.prompt) and previous.strip():
            prompt = f"{prompt}\n\n{previous}"
        prompt = context.redactor.text(prompt)
        allowed = _on_this_channel(self.node.approvers, context)
        if self.node.approvers and not allowed:
            raise ConditionFailed(
                f"The step {self.node.id} waits for {', '.join(self.node.approvers)}, and none of them is on "
                "this channel."
            )
        log = [entry(context, "step_start"), entry(context, "wait_input", prompt)]
        trail = {"node": self.node.id, "log": log}
        edits = (EDIT,) if self.node.editable else ()
        ask = Pause(
            prompt=prompt,
            options=(*DECISIONS, *edits),
            expires_s=self.node.expires_s,
            allowed=allowed,
            notes=True,
            worded=edits,
        )
        return NodeResult(update={TRAIL: trail}, decision=ask)


def edited_node(node: WorkflowApproval, label: str) -> NodeSpec[RunContext]:
    """Puts the text of an answer `edit` in place of what was to be approved. `label` is the name of the
    approval in the graph."""
    return NodeSpec(run=_Edited(node=node, label=label), writes=(PREVIOUS, FIRST, TRAIL), retry=ONCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edited:
    node: WorkflowApproval
    label: str

    async def __call__(self, state: State, context: RunContext) -> NodeResult:
        text = context.redactor.text(str(state.get("answers", {}).get(self.label, {}).get("note", "")))
        trail: dict[str, Any] = {"node": self.node.id, "log": [], "output": text}
        return NodeResult(update={PREVIOUS: text, FIRST: False, TRAIL: trail})


def _short(text: str) -> str:
    return text if len(text) <= _REVIEWED_CHARS else f"{text[:_REVIEWED_CHARS]} …"


def _on_this_channel(approvers: tuple[str, ...], context: RunContext) -> tuple[str, ...]:
    """The users among the approvers who have the channel and the account of the chat."""
    place = context.scope.thread
    found: list[str] = []
    for approver in approvers:
        channel, *account, user = approver.split(":")
        if channel == place.channel and account in ([], [place.account]):
            found.append(user)
    return tuple(found)


def result_node() -> NodeSpec[RunContext]:
    """Shows the output of a branch that ends, as a part of the answer."""
    return NodeSpec(run=_result, reads=(PREVIOUS,), writes=("agent",), retry=ONCE)


async def _result(state: State, context: RunContext) -> NodeResult:
    text = context.redactor.text(str(state.get(PREVIOUS, ""))).strip()
    if text:
        await context.on_text(f"{text}\n\n")
    answer = {"status": "done", "answer": text, "updated_at": context.clock.now()}
    return NodeResult(update={"agent": answer if text else {"status": _ENDED, "answer": ""}})


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterIf:
    """The route after an if: every target of the chosen handle."""

    targets: Mapping[str, tuple[str, ...]]

    def __call__(self, state: State) -> tuple[str, ...]:
        return self.targets.get(str(state.get(HANDLE, "")), (END,))


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterApproval:
    """The route after an approval: every target of the person's decision."""

    label: str
    targets: Mapping[str, tuple[str, ...]]

    def __call__(self, state: State) -> tuple[str, ...]:
        choice = str(state.get("answers", {}).get(self.label, {}).get("choice", ""))
        return self.targets.get(choice.lower(), (END,))
