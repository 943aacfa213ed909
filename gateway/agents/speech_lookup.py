"""Find the speech settings of the agent that answers in a chat, or that has given an answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

from gateway.agents.routes import AgentRoutes
from gateway.config import DEFAULT_AGENT, AgentSpeech
from gateway.storage.log_records import SessionRecord, UserRecord, content_of
from gateway.storage.ports import Record, RecordKind
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import ThreadKey

_log = logging.getLogger(__name__)


class Log(Protocol):
    """What is read of the store."""

    async def current_session(self, thread: str) -> str | None: ...

    async def read_log(
        self,
        thread: str,
        *,
        kinds: Sequence[RecordKind] | None = None,
        session_id: str | None = None,
        message_id: str | None = None,
    ) -> tuple[Record, ...]: ...


class SpeechLookup:
    """The agents' speech settings, by chat and message. Reads nothing where all agents have the same."""

    def __init__(self, agents: Mapping[str, AgentSpeech], routes: AgentRoutes, log: Log) -> None:
        """`agents` are the speech settings by the agent's name."""
        self._agents = agents
        self._routes = routes
        self._log = log
        self._differ = len(set(agents.values())) > 1

    async def __call__(
        self, thread: ThreadKey, author: str, *, private: bool, message_id: str = ""
    ) -> AgentSpeech:
        """The settings of the agent that answers the author's message `message_id`; without one, or before
        its words are recorded, of the agent that answers the author's next message. A failure of the store is
        logged, and the built-in settings count."""
        if not self._differ:
            return self._agents[DEFAULT_AGENT]
        try:
            name = await self._recorded(thread, message_id) if message_id else None
            if name is None:
                chosen = await self._chosen(thread)
                name = self._routes.answering(thread, author, private=private, chosen=chosen)
        except StorageError as error:
            _log.warning("the speech settings of a chat's agent are not known", extra={"reason": str(error)})
            return AgentSpeech()
        # An agent that is no longer configured may have given the answer.
        return self._agents.get(name, self._agents[DEFAULT_AGENT])

    async def _recorded(self, thread: ThreadKey, message_id: str) -> str | None:
        for record in await self._log.read_log(thread.encode(), kinds=("user",), message_id=message_id):
            content = content_of(record)
            if isinstance(content, UserRecord):
                return content.agent or DEFAULT_AGENT
        return None

    async def _chosen(self, thread: ThreadKey) -> str:
        """The agent that was chosen in the chat; empty for none."""
        key = thread.encode()
        session = await self._log.current_session(key)
        if session is None:
            return ""
        for record in await self._log.read_log(key, kinds=("session",), session_id=session):
            content = content_of(record)
            if isinstance(content, SessionRecord):
                return content.agent
        return ""
