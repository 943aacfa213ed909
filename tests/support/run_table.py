"""Run many documents through one gateway: a message in each chat, what its person answers, and what follows.

The runs go one after the other, each by `/run` in a separate chat, so that each has the model for itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from gateway.turns.run_codec import runs_of
from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import ErrorEvent, PipelineEvent, StepStarted
from pipeline.domain.frozen import dataclass
from pipeline.graph.run.records import RawRecord
from pipeline.llm.client import LlmFinished, LlmItem, LlmRequest, ToolAsked
from pipeline.playbooks.reading import read_playbook
from pipeline.playbooks.run_record import PlaybookRun, playbook_record
from pipeline.workflows.reading import read_workflow
from pipeline.workflows.run_record import WorkflowRun, run_record
from tests.pipeline.workflows.documents import Echo
from tests.support.gate_graph import answer_to
from tests.support.harness import GatewayHarness, open_gateway

_AT_ONCE: Final = 20
"""The most agents of one route."""
Plain = dict[str, Any]
Said = str | Exception | ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run."""

    document: Plain
    text: str = "go"
    """The message that begins it."""
    says: Mapping[str, Said] = field(default_factory=dict)
    """What the model answers to a text; without an entry it repeats it."""
    then: tuple[str | float, ...] = ()
    """What happens at each pause: words of the person, or seconds that pass. Words with a bar before them, as
    in `|approve`, are a button of the oldest question."""
    others: Mapping[str, Plain] = field(default_factory=dict)
    """Further documents of the folder, by their file names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of a run."""

    replies: tuple[str, ...]
    """What the chat got to read, oldest first."""
    ended: PipelineEvent | None
    """The last event of the newest message; None after a time that has passed."""
    asked: tuple[str, ...]
    """The last texts of the model's requests."""
    requests: tuple[LlmRequest, ...]
    steps: tuple[str, ...]
    """The steps that the channel was shown."""
    records: tuple[RawRecord, ...]
    source: Plain
    folder: Path

    @property
    def reply(self) -> str:
        return self.replies[-1]

    @property
    def error(self) -> str:
        """The words of the error with which the newest message ended."""
        assert isinstance(self.ended, ErrorEvent), self.ended
        return self.ended.message

    @property
    def playbook(self) -> PlaybookRun:
        """The public record of a playbook's run."""
        return playbook_record(read_playbook(self.source, open_other=self._other), self.records)

    @property
    def workflow(self) -> WorkflowRun:
        """The public record of a workflow's run."""
        return run_record(read_workflow(self.source), self.records)

    def logged(self, *types: str) -> list[tuple[str, str]]:
        """The nodes and contents of the log entries of these types."""
        return [(one.node, one.content) for one in self.workflow.logs if one.type in types]

    def _other(self, file: str) -> str:
        return (self.folder / file).read_text("utf-8")


async def run_table(folder: Path, rows: Mapping[str, Row], *overrides: str) -> Mapping[str, Ran]:
    """Run every row. A name is the agent's and the chat's: letters, digits and underscores."""
    found: dict[str, Ran] = {}
    for number, some in enumerate(_parts(tuple(rows))):
        await asyncio.to_thread((folder / str(number)).mkdir)
        found |= await _run_some(folder / str(number), {name: rows[name] for name in some}, overrides)
    return found


def _parts(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [names[at : at + _AT_ONCE] for at in range(0, len(names), _AT_ONCE)]


async def _run_some(folder: Path, rows: Mapping[str, Row], overrides: Sequence[str]) -> dict[str, Ran]:
    model, clock, own = _Model({}), ManualClock(), list(overrides)
    for name, row in rows.items():
        for file, source in {**row.others, f"{name}.json": row.document}.items():
            (folder / file).write_text(json.dumps(source), "utf-8")
        own.append(f'agents.{name}.graph="{folder / name}.json"')
    own += ['routes.1.agent="default"', f"routes.1.also={json.dumps(list(rows))}"]
    found: dict[str, Ran] = {}
    async with open_gateway(folder / "data", *own, model=model, clock=clock) as harness:
        for name, row in rows.items():
            try:
                found[name] = await _ran(harness, model, clock, name, row, folder)
            except BaseException as error:
                error.add_note(f"row {name}")
                raise
    return found


async def _ran(
    harness: GatewayHarness, model: _Model, clock: ManualClock, name: str, row: Row, folder: Path
) -> Ran:
    channel, thread = harness.channel, f"console:local:{name}"
    model.says, asked, sent, events = dict(row.says), len(model.asked), len(channel.sent), len(channel.events)
    message_id = (await channel.say(f"/run {name} {row.text}", chat=name)).message_id
    await channel.reply(message_id)
    for number, step in enumerate(row.then):
        if isinstance(step, float):
            before, message_id = len(channel.sent), ""
            await clock.advance(step)
            await channel.until(lambda count=before: len(channel.sent) > count)
            continue
        if step.startswith("|"):
            question, *_ = await harness.store.pending_interactions(thread, now=0.0)
            message_id = f"m_{name}_{number}"
            given = answer_to(question.id, step[1:], name=f"{name}_{number}", chat=name)
            await channel.bring(given)
        else:
            message_id = (await channel.say(step, chat=name)).message_id
        await channel.reply(message_id)
    ended = await channel.terminal(message_id) if message_id else None
    (records,) = runs_of(await harness.records(thread=thread)).values()
    return Ran(
        replies=tuple(one.text for one in channel.sent[sent:]),
        ended=ended,
        asked=tuple(model.asked[asked:]),
        requests=tuple(model.requests[asked:]),
        steps=tuple(one.step for one in channel.events[events:] if isinstance(one, StepStarted)),
        records=tuple(records),
        source=row.document,
        folder=folder,
    )


class _Model(Echo):
    """An `Echo` that may also call a tool in place of an answer."""

    def __init__(self, says: Mapping[str, Said]) -> None:
        super().__init__({})
        self.says: dict[str, Any] = dict(says)

    async def stream(self, request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
        """See `LlmClient.stream`."""
        called = self.says.get(request.messages[-1].content)
        if not isinstance(called, ToolCall):
            async for item in super().stream(request):
                yield item
            return
        self.asked.append(request.messages[-1].content)
        self.requests.append(request)
        yield ToolAsked(call=called)
        yield LlmFinished(finish_reason="tool_calls")


def nodes_of(events: Sequence[Any], kind: str) -> list[str]:
    """The nodes of the events of a kind, in order."""
    return [one.node for one in events if one.type == kind]
