"""Answer pressed buttons and slash commands: each once, within three seconds; only the user who pressed
sees a refusal.

Not here: what a press means (`inbound`) and whether it counts (the inbox).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from adapters.channel import Acceptance
from adapters.discord.failures import classify
from adapters.discord.outbound import EPHEMERAL, TEXT_CHARS, plain_body
from adapters.discord.payload import snowflake
from adapters.discord.rest import Rest
from adapters.formatting.discord import discord_parts
from adapters.formatting.visible import visible
from adapters.json_fields import mapping, mappings, text
from pipeline.domain.clock import Clock
from pipeline.domain.command_types import CommandName
from pipeline.domain.messages import ApprovalReply, SessionCommand

_log = logging.getLogger(__name__)

_SAID: Mapping[CommandName, str] = {
    "stop": "Stopping.",
    "new": "Beginning a new conversation.",
    "otr": "Changing whether this is kept.",
    "voice": "Changing voice replies.",
    "help": "The help comes into this chat.",
    "retry": "Answering again.",
    "run": "Running it.",
}
_SAID_OTHERWISE = "The answer comes into this chat."
_PUT_OFF_S = 2.0
"""Two of Discord's three seconds; one is for the network."""
_COMMAND, _COMPONENT = 2, 3
_WORDS, _WORDS_LATER, _LATER, _UPDATE = 4, 5, 6, 7
_NO_MORE = "This button no longer does anything."
_NOT_HERE = "You cannot use this here."


class DiscordInteraction:
    """One press or slash command, answered by `settle`."""

    def __init__(self, data: Mapping[str, Any], rest: Rest, clock: Clock) -> None:
        self._data = data
        self._rest = rest
        self._clock = clock
        self._id = snowflake(data.get("id"))
        self._token = text(data.get("token"), most=1000)
        self._application = snowflake(data.get("application_id"))
        self._component = data.get("type") == _COMPONENT
        self._put_off = False

    @property
    def answerable(self) -> bool:
        """Whether it is a press or a slash command that can be answered."""
        return bool(self._id and self._token) and self._data.get("type") in (_COMMAND, _COMPONENT)

    async def settle(self, item: ApprovalReply | SessionCommand, outcome: asyncio.Future[Acceptance]) -> None:
        """Answer with the outcome of `item`. Raises nothing but CancelledError."""
        try:
            acceptance = await self._within_time(outcome)
            await self._answer(item, acceptance)
        except Exception as error:  # noqa: BLE001 - the press itself is already processed
            _log.warning("discord: a press was not answered: %s", classify(error).message)

    async def dismiss(self) -> None:
        """Answer a press without meaning for the bot. Raises nothing but CancelledError."""
        try:
            await self._say(_NO_MORE if self._component else _NOT_HERE)
        except Exception as error:  # noqa: BLE001 - as in settle
            _log.warning("discord: a press was not answered: %s", classify(error).message)

    async def _within_time(self, outcome: asyncio.Future[Acceptance]) -> Acceptance:
        try:
            async with self._clock.timeout(_PUT_OFF_S):
                return await asyncio.shield(outcome)
        except TimeoutError:
            self._put_off = True
        later: dict[str, Any] = {"type": _LATER}
        if not self._component:
            later = {"type": _WORDS_LATER, "data": {"flags": EPHEMERAL}}
        await self._rest.answer_interaction(self._id, self._token, later)
        return await outcome

    async def _answer(self, item: ApprovalReply | SessionCommand, acceptance: Acceptance) -> None:
        if acceptance.status == "refused":
            reason = acceptance.reason or _NOT_HERE
            if self._component and acceptance.over:
                await self._update({"components": self._other_rows()})
            await self._say(reason)
        elif isinstance(item, ApprovalReply):
            await self._update(self._chosen())
        elif self._component:
            await self._update({"components": []})
        else:
            await self._say(_SAID.get(item.name, _SAID_OTHERWISE))

    async def _say(self, words: str) -> None:
        """Send text that only the user who pressed sees."""
        body = plain_body(discord_parts(visible(words))[0].content)
        body["flags"] |= EPHEMERAL
        if self._put_off:
            await self._rest.follow_up(self._application, self._token, body)
        else:
            await self._rest.answer_interaction(self._id, self._token, {"type": _WORDS, "data": body})

    async def _update(self, change: Mapping[str, Any]) -> None:
        """Change the message with the pressed button; later text is a second message."""
        if self._put_off:
            await self._rest.edit_answer(self._application, self._token, change)
        else:
            await self._rest.answer_interaction(self._id, self._token, {"type": _UPDATE, "data": change})
            self._put_off = True

    def _chosen(self) -> dict[str, Any]:
        """The question's message without the buttons, and with the choice below it where there is
        space."""
        message = mapping(self._data.get("message"))
        said = text(message.get("content"), most=TEXT_CHARS)
        pressed = mapping(self._data.get("data")).get("custom_id")
        label = ""
        for row in mappings(message.get("components"), most=5):
            for button in mappings(row.get("components"), most=5):
                if button.get("custom_id") == pressed:
                    label = text(button.get("label"), most=80)
        line = f"\n→ {discord_parts(visible(label))[0].content}" if label else ""
        if not line or len(said) + len(line) > TEXT_CHARS:
            return {"components": self._other_rows()}
        return plain_body(said + line, self._other_rows())

    def _other_rows(self) -> list[Mapping[str, Any]]:
        """The rows of buttons of other questions."""
        pressed = text(mapping(self._data.get("data")).get("custom_id"), most=100)
        question = pressed.rpartition(":")[0]
        rows = mappings(mapping(self._data.get("message")).get("components"), most=5)
        return [
            row
            for row in rows
            if not any(
                text(button.get("custom_id"), most=100).rpartition(":")[0] == question
                for button in mappings(row.get("components"), most=5)
            )
        ]
