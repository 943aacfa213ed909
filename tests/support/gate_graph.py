"""A graph that asks a person before it acts, and records its node executions in a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author
from pipeline.graph.definition.decisions import NodeResult, Pause, State
from pipeline.graph.definition.spec import EdgeSpec, GraphSpec, NodeSpec, OnFailure, OnSuccess
from pipeline.runtime.context import RunContext

PROMPT = "Send 100 to Ann?"
OPTIONS = ("approve", "deny")


class Ledger:
    """One line for each node execution, over all processes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, line: str) -> None:
        """Add a line."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def lines(self) -> list[str]:
        """All lines, oldest first."""
        return self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []


def gate_graph(
    ledger: Ledger,
    *,
    expires_s: float | None = None,
    expires_by_text: Mapping[str, float] | None = None,
    options: tuple[str, ...] = OPTIONS,
    prompt: str = PROMPT,
    version: str = "1",
    rescued: bool = False,
) -> GraphSpec[RunContext]:
    """prepare -> ask (a gate) -> act -> end. With `rescued`, there is an edge for a failed question;
    `expires_by_text` gives the gate's time limit by the text of the message, instead of `expires_s`."""

    async def prepare(_state: State, context: RunContext) -> NodeResult:
        ledger.note("prepare")
        return NodeResult(update={"prepared": context.text})

    async def ask(_state: State, context: RunContext) -> NodeResult:
        ledger.note("ask")
        seconds = (expires_by_text or {}).get(context.text, expires_s)
        return NodeResult(decision=Pause(prompt=prompt, options=options, expires_s=seconds))

    async def rescue(_state: State, context: RunContext) -> NodeResult:
        ledger.note("rescue")
        return NodeResult(update={"agent": {"answer": f"{context.text}: not paid"}})

    async def act(state: State, context: RunContext) -> NodeResult:
        answer = state["answers"]["ask"]
        ledger.note(f"act {answer['choice']}")
        said = await context.history.conversation()
        words = f"{context.text}: {answer['choice']} by {answer['by']}, after {said.size} lines"
        return NodeResult(update={"agent": {"answer": words}})

    return GraphSpec(
        name="gates",
        entry="prepare",
        nodes={
            "prepare": prepare,
            "ask": NodeSpec(run=ask, goes_to=()),
            "act": act,
            **({"rescue": rescue} if rescued else {}),
        },
        edges=(
            EdgeSpec(source="prepare", target="ask"),
            EdgeSpec(source="ask", target="act", when=OnSuccess()),
            *((EdgeSpec(source="ask", target="rescue", when=OnFailure()),) if rescued else ()),
        ),
        version=version,
    )


def answer_to(
    interaction_id: str, choice: str, *, name: str = "answer", chat: str = "c1", author: str = "owner"
) -> ApprovalReply:
    """A person's answer, by default the owner's, as a channel submits it."""
    return ApprovalReply(
        message_id=f"m_{name}",
        native_id=name,
        thread=ThreadKey(channel="console", account="local", chat=chat),
        author=Author(id=author),
        received_at=1_700_000_000.0,
        interaction_id=interaction_id,
        choice=choice,
    )
