"""A gateway whose default agent is a companion, and a person who talks to it."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gateway.storage.ports import Record
from gateway.turns.run_codec import runs_of
from pipeline.companion.graph import companion_graph
from pipeline.domain.clock import SystemClock
from pipeline.domain.ids import identity_key
from pipeline.graph.documents.trace import Trace, trace
from pipeline.graph.execution.executor import Executor
from pipeline.llm.client import LlmFinished, LlmItem, LlmRequest, TextDelta
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.memory.values import Fact
from tests.support.harness import GatewayHarness, open_gateway

COMPANION = 'agent.graph="companion"'


class CompanionModel(ScriptedLlm):
    """Answers questions of a form from `forms`, by the form's name, with an empty result where there is none;
    everything else as the script says."""

    def __init__(self, script: Iterable[ScriptedAnswer] = (), **forms: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(script)
        self.forms = {name: deque(answers) for name, answers in forms.items()}
        self.asked: list[LlmRequest] = []
        """The requests for a form."""

    async def stream(self, request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
        if request.schema is None:
            async for item in super().stream(request):
                yield item
            return
        self.asked.append(request)
        name = request.schema.name
        left = self.forms.get(name, deque())
        yield TextDelta(text=json.dumps(left.popleft() if left else _EMPTY[name]))
        yield LlmFinished(finish_reason="stop", prompt_tokens=9, completion_tokens=3)


_EMPTY: Final[Mapping[str, Mapping[str, Any]]] = {
    "facts": {"facts": [], "reason": "nothing"},
    "rules": {"rules": [], "reason": "nothing"},
    "session_arc": {"too_thin": True, "summary": "", "primary_themes": []},
    "mode_of_the_message": {"mode": "supportive"},
}


@dataclass(slots=True)
class Talk:
    """A person's chat with the companion."""

    harness: GatewayHarness
    chat: str = "c1"
    user: str = "owner"

    @property
    def thread(self) -> str:
        return f"console:local:{self.chat}"

    async def say(self, text: str) -> str:
        """Say it; the answer."""
        accepted = await self.harness.channel.say(text, chat=self.chat, author=self.user)
        return (await self.harness.channel.reply(accepted.message_id)).text

    @property
    def owner(self) -> str:
        """The owner of the person's memory."""
        return identity_key("console", "local", self.user)

    async def facts(self) -> tuple[Fact, ...]:
        """What is remembered of the person, newest first."""
        return await self.harness.store.memories.facts(self.owner)

    async def rested(self) -> None:
        """Wait until nothing is left to do after the answers."""
        while await self.jobs():
            await SystemClock().sleep(0.005)  # the store answers from a separate thread

    async def sessions(self, count: int) -> list[Record]:
        """The records of the chat's sessions, when there are so many."""
        while len(found := await self.harness.records("session", thread=self.thread)) < count:
            await SystemClock().sleep(0.005)
        assert len(found) == count
        return found

    async def jobs(self) -> list[str]:
        """The kinds of the open jobs that are due at once."""
        listed = await self.harness.store.jobs.listed(limit=100)
        return [
            job.kind for job in listed if job.kind in ("memory", "forgetting", "session_memory", "rotation")
        ]

    async def traces(self) -> list[Trace]:
        """What the runs of the chat did, oldest first."""
        rows = await self.harness.store.read_log(self.thread)
        return [trace(records) for records in runs_of(rows).values()]

    async def state(self) -> Mapping[str, Any]:
        """The state of the newest run as recorded, once nothing is left of it."""
        await self.rested()
        rows = await self.harness.store.read_log(self.thread)
        records = list(runs_of(rows).values())[-1]
        return Executor(companion_graph()).interrupted(records).state

    async def progress(self) -> Mapping[str, Any]:
        """What the session has come to."""
        session = await self.harness.store.current_session(self.thread)
        found = await self.harness.store.states.read(f"session:{session}", "/companion")
        return {} if found is None else found.body["values"]["progress"]

    async def step(self) -> tuple[str | None, int | None]:
        """The running exercise and its step."""
        progress = await self.progress()
        return progress.get("exercise_type"), progress.get("exercise_step")

    async def path(self) -> list[str]:
        """The nodes of the newest run, once nothing is left of it."""
        await self.rested()
        return [step.node for step in (await self.traces())[-1].steps]


@asynccontextmanager
async def open_companion(data: Path, *overrides: str, **given: Any) -> AsyncIterator[Talk]:
    """Run a gateway with a companion; the arguments are those of `open_gateway`."""
    given.setdefault("llm", CompanionModel())
    async with open_gateway(data, COMPANION, *overrides, **given) as harness:
        yield Talk(harness)
