"""Start, find, answer and stop runs for a token. Every run is an ordinary message in the inbox.

A run of another person looks like one that does not exist. Only who is named by an open question of a
run may answer it too, and sees no more of the run than that question.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence

from adapters.api.ports import OpenQuestion, Runs, RunView
from adapters.api.problems import RequestRefused, invalid
from adapters.api.run_ids import new_run_id, run_id_of, stop_id, thread_of, workflow_of
from adapters.api.settings import ApiOptions, Token
from adapters.api.wakes import Wakes
from adapters.channel import Acceptance, OnInbound
from pipeline.domain.clock import Clock
from pipeline.domain.errors import InvalidInput, StorageError
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import (
    ApprovalReply,
    Author,
    Inbound,
    InboundMessage,
    SessionCommand,
    button_handle,
)

SETTLE_S = 5.0
"""How long a stop waits until the turn that it stops has ended."""
MOST_WORDS = 4_000
"""Characters of an answer in words, as in a chat."""
_NO_RUN = "There is no such run."
_RETRY_S = "5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A run that was started, now or by an earlier request with the same key."""

    run_id: str
    thread: ThreadKey
    repeated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A run that a token may see."""

    thread: ThreadKey
    own: bool
    """False for a run of another person that asks the token's person."""
    questions: tuple[OpenQuestion, ...]
    """Those that the token's person may answer."""


class RunService:
    """The runs of all tokens. `on_inbound` is the inbox while the channel runs."""

    def __init__(self, settings: ApiOptions, runs: Runs, wakes: Wakes, clock: Clock) -> None:
        self._settings = settings
        self._runs = runs
        self._wakes = wakes
        self._clock = clock
        self._starting: dict[str, asyncio.Lock] = {name: asyncio.Lock() for name in settings.tokens}
        self.on_inbound: OnInbound | None = None

    async def start(self, token: Token, workflow: str, text: str, key: str) -> Begun:
        """Start a run of `workflow` with the input `text`; with `key`, once for all requests with it. Raises
        RequestRefused."""
        if not token.may_use(workflow) or workflow not in self._runs.workflows:
            raise RequestRefused(404, "There is no such workflow.")
        asked = hashlib.sha256(json.dumps([workflow, text]).encode()).hexdigest()
        run_id = run_id_of(workflow, token.name, key, asked) if key else new_run_id(workflow)
        native = f"key:{token.name}:{hashlib.sha256(key.encode()).hexdigest()}" if key else f"run:{run_id}"
        return await self.begin(token.name, run_id, native, text)

    async def begin(
        self, person: str, run_id: str, native_id: str, text: str, *, foreign: bool = False
    ) -> Begun:
        """Put the message that begins a run into the inbox, once for each `native_id`. `foreign`: others have
        written it. Raises RequestRefused."""
        thread = thread_of(person, run_id)
        message = InboundMessage(
            message_id=run_id,
            native_id=native_id,
            thread=thread,
            author=Author(id=person, name=person),
            received_at=self._clock.now(),
            text=text,
            forwarded=foreign,
        )
        async with self._starting[person]:
            if await self._open_runs(person) >= self._settings.max_open_runs:
                if await self._read(thread) is not None:
                    return Begun(run_id=run_id, thread=thread, repeated=True)
                what = f"{self._settings.max_open_runs} runs of this token are not finished yet."
                raise RequestRefused(429, what, headers={"Retry-After": _RETRY_S})
            accepted = await self._bring(message)
        if accepted.status == "refused":
            words = accepted.reason or "The gateway takes no more messages of this token now."
            raise RequestRefused(429, words, headers={"Retry-After": "60"})
        if accepted.message_id != run_id:
            raise RequestRefused(422, "Idempotency-Key: it was used for another request.")
        return Begun(run_id=run_id, thread=thread, repeated=accepted.status == "duplicate")

    async def find(self, token: Token, run_id: str) -> Found:
        """The run, if the token may see it. Raises RequestRefused, the same for every other run."""
        workflow = workflow_of(run_id)
        if not workflow or not token.may_use(workflow):
            raise RequestRefused(404, _NO_RUN)
        own = thread_of(token.name, run_id)
        try:
            if await self._runs.read(own) is not None:
                questions = await self._runs.questions(own)
                return Found(thread=own, own=True, questions=_for(questions, token.name))
            if "answer" in token.scopes:
                found = None
                # Every other person is asked for, so that the time tells nothing.
                for name in self._settings.tokens:
                    thread = thread_of(name, run_id)
                    questions = _for(await self._runs.questions(thread), token.name)
                    if questions and name != token.name:
                        found = Found(thread=thread, own=False, questions=questions)
                if found is not None:
                    return found
        except StorageError as error:
            raise unavailable() from error
        raise RequestRefused(404, _NO_RUN)

    async def view(self, found: Found) -> RunView:
        """The run. Raises RequestRefused."""
        view = await self._read(found.thread)
        if view is None:
            raise RequestRefused(404, _NO_RUN)
        return view

    async def answer(
        self, token: Token, found: Found, question: str, *, choice: str, text: str, note: str
    ) -> None:
        """Answer a question, by the `choice` of an option or, where it has none, by any `text`; the only open
        one if `question` is empty. Raises RequestRefused."""
        asked = await self._asked(found, question)
        if not asked.options and not text:
            raise invalid("choice", "this question has no options; send text")
        if asked.options and text:
            raise invalid("text", f"this question takes a choice: {', '.join(asked.options)}")
        if asked.options and choice not in asked.options:
            raise invalid("choice", f"it is none of: {', '.join(asked.options)}")
        if note and not asked.takes_note:
            raise invalid("note", "this question takes no note")
        identity = f"answer:{button_handle(asked.id)}:{token.name}"
        if text:
            # Words that a gate takes over answer nothing, so that others may follow.
            identity += f":{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        reply = ApprovalReply(
            message_id=f"{found.thread.topic}:{identity}",
            native_id=identity,
            thread=found.thread,
            author=Author(id=token.name, name=token.name),
            received_at=self._clock.now(),
            interaction_id=asked.id,
            choice=choice or text,
            note=note,
        )
        accepted = await self._bring(reply)
        if accepted.status == "refused":
            raise RequestRefused(409, accepted.reason or "This question can no longer be answered.")

    async def stop(self, token: Token, found: Found) -> RunView:
        """Stop a run of the token; nothing happens to one that has ended. Raises RequestRefused."""
        view = await self.view(found)
        if view.over:
            return view
        identity = stop_id(str(found.thread.topic))
        command = SessionCommand(
            message_id=identity,
            native_id=identity,
            thread=found.thread,
            author=Author(id=token.name, name=token.name),
            received_at=self._clock.now(),
            name="stop",
        )
        await self._bring(command)
        with self._wakes.waiting(found.thread) as woken:
            deadline = self._clock.monotonic() + SETTLE_S
            while (left := deadline - self._clock.monotonic()) > 0:
                view = await self.view(found)
                if view.over or view.status == "paused":
                    break
                await woken.wait(min(left, 1.0))
        try:
            # A paused run has no turn that could be stopped.
            await self._runs.close_questions(found.thread)
        except StorageError as error:
            raise unavailable() from error
        self._wakes.wake(found.thread)
        return await self.view(found)

    async def _asked(self, found: Found, question: str) -> OpenQuestion:
        """The question that is meant. Raises RequestRefused."""
        if not question:
            if len(found.questions) == 1:
                return found.questions[0]
            if not found.questions:
                raise RequestRefused(409, "No question of this run waits for an answer of yours.")
            raise invalid("questionId", "several questions are open; name the one that is meant")
        asked = next((one for one in found.questions if one.id == question), None)
        if asked is not None:
            return asked
        try:
            choice = await self._runs.answered(found.thread, question) if found.own else None
        except StorageError as error:
            raise unavailable() from error
        if choice is not None:
            raise RequestRefused(409, "This question is closed.", choice=choice)
        raise RequestRefused(404, "There is no such question that you may answer.")

    async def _open_runs(self, person: str) -> int:
        try:
            return await self._runs.unfinished(person)
        except StorageError as error:
            raise unavailable() from error

    async def _read(self, thread: ThreadKey) -> RunView | None:
        try:
            return await self._runs.read(thread)
        except StorageError as error:
            raise unavailable() from error

    async def _bring(self, item: Inbound) -> Acceptance:
        if self.on_inbound is None:
            raise unavailable()
        try:
            return await self.on_inbound(item)
        except StorageError as error:
            raise unavailable() from error
        except InvalidInput as error:
            raise invalid("body", "it cannot be taken") from error


def _for(questions: Sequence[OpenQuestion], person: str) -> tuple[OpenQuestion, ...]:
    return tuple(one for one in questions if person in one.allowed)


def unavailable() -> RequestRefused:
    """The refusal while the gateway starts, stops or cannot write."""
    what = "The gateway takes no requests now. Send it again in a moment."
    return RequestRefused(503, what, headers={"Retry-After": _RETRY_S})
