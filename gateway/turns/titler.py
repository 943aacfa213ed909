"""Give a conversation a title: a few words from the model, once, when it is long enough.

A title is made while the thread is idle, under its lease, so there are never two at once. If the model gives
none, the next answer starts the next try. A conversation off the record gets no title.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from gateway.agents.agent_book import AgentModels
from gateway.storage.log_records import title_body
from gateway.storage.ports import Lease, NewRecord, Store
from gateway.turns.sessions import SessionState, write_between_turns
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.inert_text import inert
from pipeline.domain.json_schema import JsonSchema
from pipeline.domain.timeline import TimelineEntry
from pipeline.history.summarization import ask_with, messages_for
from pipeline.llm.structured import AnswerUnreadable, structured
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.ports import Budgets
from pipeline.runtime.scope import TurnScope

MIN_MESSAGES = 6
MAX_WORDS = 6
MAX_CHARS = 60
TIMEOUT_S = 10.0
_MAX_TOKENS = 48
_SHOWN_CHARS = 400
"""Characters shown of each message: its beginning says what it is about."""
_TASK = (
    "What is this conversation about? Answer with a title of at most six words, in its own language. "
    'Write it as JSON with the key "title".'
)
"""Does not describe the form of the title: the embedded model would repeat that description."""
_TITLE = JsonSchema(
    name="title",
    schema={
        "type": "object",
        "properties": {"title": {"type": "string", "minLength": 1, "maxLength": 200}},
        "required": ["title"],
    },
)
_LABEL = re.compile(r"^\W*(?:(?:title|name)\s*:|(?:this|the) conversation is about\b)\s*", re.IGNORECASE)
"""Prefixes that small models put before a title."""
_MARKS = " \t\"'`*_#>.:,;-“”„«»"


class Titles:
    """Titles one conversation at a time. Holds no conversation."""

    def __init__(
        self,
        *,
        store: Store,
        models: Callable[[str], AgentModels],
        budgets: Budgets,
        clock: Clock,
        redactor: Redactor,
        on_titled: Callable[[ThreadKey, TimelineEntry], None],
    ) -> None:
        """`models` gives those of an agent by its recorded name."""
        self._store = store
        self._models = models
        self._budgets = budgets
        self._clock = clock
        self._redactor = redactor
        self._on_titled = on_titled
        self._one = asyncio.Semaphore(1)

    def wanted(self, session: SessionState) -> bool:
        """Whether the session has no title and, with the turn that ends now, is long enough for one. Reads
        no history: the turns of one that no turn has needed are not counted."""
        known = session.conversation
        spoken = 2 * (len(known.turns) + 1)
        return not session.title and (spoken >= MIN_MESSAGES or known.summary is not None)

    async def run(self, lease: Lease, session: SessionState, scope: TurnScope) -> None:
        """Give the session a title after the turn of `scope`, under `lease`, unless it has one or the budget
        is used up. Raises ModelError and StorageError."""
        async with self._one:
            if not session.title:
                await self._name(lease, session, scope)

    async def _name(self, lease: Lease, session: SessionState, scope: TurnScope) -> None:
        if (await self._budgets.allowance(scope)).model == "none":
            return
        if 2 * len(session.conversation.turns) < MIN_MESSAGES:
            await session.read()  # a job from before a restart
        llm = self._models(scope.agent).llm

        async def ask(messages: tuple[ChatMessage, ...]) -> str:
            said = await ask_with(
                llm,
                messages,
                schema=_TITLE,
                max_tokens=_MAX_TOKENS,
                timeout_s=TIMEOUT_S,
                clock=self._clock,
                redactor=self._redactor,
            )
            await self._budgets.spent(scope, tokens=said.tokens, cost=said.cost)
            return said.text

        try:
            asked = messages_for(_TASK, _material(session, self._redactor))
            answer = await structured(asked, _TITLE, ask, again=False)
            words = str(answer["title"])
        except AnswerUnreadable as error:
            # A model that does not write JSON gives the title as text.
            words = error.answer
        title = title_of(self._redactor.text(inert(words)))
        if not title:
            return
        at = self._clock.now()
        record = NewRecord(
            kind="title",
            session_id=session.session_id,
            message_id=scope.message_id,
            body=title_body(title),
            at=at,
        )

        def name() -> None:
            session.title = title

        entry_id = await write_between_turns(self._store, lease, record, name)
        shown = TimelineEntry(entry_id=entry_id, message_id=scope.message_id, role="title", text=title, at=at)
        self._on_titled(scope.thread, shown)


def title_of(words: str) -> str:
    """The title in a model's answer: one line without marks, at most six words and 60 characters; empty if
    nothing is left."""
    line = next((line for line in words.splitlines() if line.strip(_MARKS)), "")
    line = "".join(character if character.isprintable() else " " for character in line)
    kept = _LABEL.sub("", line).strip(_MARKS).split()[:MAX_WORDS]
    while len(kept) > 1 and len(" ".join(kept)) > MAX_CHARS:
        kept.pop()
    return " ".join(kept)[:MAX_CHARS].strip(_MARKS)


def _material(session: SessionState, redactor: Redactor) -> str:
    """The beginnings of the first questions and answers."""
    shown = []
    for turn in session.conversation.turns[: MIN_MESSAGES // 2]:
        shown.append(f"User: {redactor.excerpt(turn.messages[0].content, _SHOWN_CHARS).text}")
        shown.append(f"Assistant: {redactor.excerpt(turn.messages[-1].content, _SHOWN_CHARS).text}")
    return "\n\n".join(shown)
