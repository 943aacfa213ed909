"""The fake Discord's interactions: a press or a slash command, and its one answer within 3 s."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pipeline.domain.clock import Clock
from tests.support.platforms.discord_limits import Refused
from tests.support.platforms.discord_world import Message, StoredFile

ANSWER_WITHIN_S = 3.0
_TOKEN_S = 900.0
_EPHEMERAL = 1 << 6
_MESSAGE, _DEFERRED_MESSAGE, _DEFERRED_UPDATE, _UPDATE = 4, 5, 6, 7
FAILED = "This interaction failed"

Change = Callable[[Message, dict[str, Any], list[StoredFile]], None]


@dataclass(slots=True, kw_only=True, eq=False)
class Interaction:
    """One press or command, and its answer."""

    id: str
    at: float
    message: Message | None
    """Whose button was pressed."""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(40))
    kind: int = 0
    """The answer's type; 0 before there is one."""
    words: str = ""
    """The text that only the person who pressed sees."""
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    finished: asyncio.Event = field(default_factory=asyncio.Event)


class Interactions:
    """All interactions. `answer_late_s` is how long after the press each was answered."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_token: dict[str, Interaction] = {}
        self.delays: list[float] = []
        """Seconds between press and answer."""
        self.public: list[str] = []
        """Answers that were visible to the whole channel."""

    def open(self, native_id: str, message: Message | None) -> Interaction:
        """A new interaction, waiting for its answer."""
        interaction = Interaction(id=native_id, at=self._clock.monotonic(), message=message)
        self._by_token[interaction.token] = interaction
        return interaction

    def all(self) -> list[Interaction]:
        """Every interaction so far, oldest first."""
        return list(self._by_token.values())

    async def words_for(self, interaction: Interaction) -> str:
        """What the presser reads: the ephemeral words, or the platform's own when no answer comes."""
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                await interaction.answered.wait()
            async with asyncio.timeout(20.0):
                await interaction.finished.wait()
        except TimeoutError:
            return interaction.words or FAILED
        return interaction.words

    def answer(self, native_id: str, token: str, payload: dict[str, Any], change: Change) -> None:
        """The first answer. Raises Refused when it is late, the second, or malformed."""
        interaction = self._known(token, within_s=ANSWER_WITHIN_S)
        if interaction.id != native_id:
            raise Refused(404, 10062, "Unknown interaction")
        if interaction.kind:
            raise Refused(400, 40060, "Interaction has already been acknowledged.")
        kind, data = payload.get("type"), payload.get("data") or {}
        if kind == _UPDATE and interaction.message is not None:
            change(interaction.message, data, [])
        elif kind == _MESSAGE:
            self._say(interaction, data)
        elif kind not in (_DEFERRED_MESSAGE, _DEFERRED_UPDATE):
            raise Refused(400, 50035, "Invalid Form Body: type")
        interaction.kind = kind
        self.delays.append(self._clock.monotonic() - interaction.at)
        interaction.answered.set()
        if kind in (_UPDATE, _MESSAGE):
            interaction.finished.set()

    def follow_up(self, token: str, payload: dict[str, Any]) -> None:
        """One more message after the answer. Raises Refused."""
        interaction = self._known(token, within_s=_TOKEN_S)
        self._after_answer(interaction)
        self._say(interaction, payload)
        interaction.finished.set()

    def edit_original(self, token: str, payload: dict[str, Any], change: Change) -> None:
        """Edit the message of the button, or fill in the deferred answer. Raises Refused."""
        interaction = self._known(token, within_s=_TOKEN_S)
        self._after_answer(interaction)
        if interaction.message is not None:
            change(interaction.message, payload, [])
        else:
            interaction.words = str(payload.get("content") or "")
        interaction.finished.set()

    def _say(self, interaction: Interaction, data: dict[str, Any]) -> None:
        content = str(data.get("content") or "")
        if not content.strip():
            raise Refused(400, 50006, "Cannot send an empty message")
        if int(data.get("flags") or 0) & _EPHEMERAL:
            interaction.words = content
        else:
            self.public.append(content)

    def _known(self, token: str, *, within_s: float) -> Interaction:
        interaction = self._by_token.get(token)
        if interaction is None or self._clock.monotonic() - interaction.at > within_s:
            raise Refused(404, 10062, "Unknown interaction")
        return interaction

    def _after_answer(self, interaction: Interaction) -> None:
        if not interaction.kind:
            raise Refused(404, 10015, "Unknown Webhook")
