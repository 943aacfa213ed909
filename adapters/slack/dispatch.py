"""Dispatch Slack's payloads through slack-bolt to the gateway, and answer them. Both receivers use it.

The app listens to everything and waits for the listener before it answers: the answer is an ack only if
the gateway has stored the item. Retries are never rejected by their count: they deliver what a crash lost.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.context.async_context import AsyncBoltContext
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_sdk.web.async_client import AsyncWebClient

from adapters.channel import Acceptance, OnInbound
from adapters.slack.calls import quiet_logger
from adapters.slack.inbound import Bot, parse_event, parse_press, parse_slash, teams_of
from adapters.slack.plain_text import escaped
from adapters.slack.settings import SlackOptions
from pipeline.domain.clock import Clock
from pipeline.domain.command_types import CommandName
from pipeline.domain.commands import COMMANDS
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import Inbound

_log = logging.getLogger(__name__)

Payload = Mapping[str, Any]
AfterPress = Callable[[Payload, Inbound, Acceptance], Awaitable[None]]
_ANYTHING = re.compile(r"")
_AFTER = "parlour_after"
_COMMAND_WORDS: Mapping[CommandName, str] = {
    "stop": "Stopping.",
    "new": "A new session begins.",
    "otr": "Whether this is kept changes.",
    "voice": "Voice replies change.",
    "help": "Here is what I can do.",
    "agent": "Here are the agents.",
    "retry": "I answer again.",
    "run": "I run it.",
}
_COMMAND_WORDS_OTHERWISE = "The answer comes into this chat."


def _listed(words: Iterable[str], last: str) -> str:
    *others, final = words
    return f"{', '.join(others)} {last} {final}"


USAGE = (
    f"Write {_listed((f'`{one.name}`' for one in COMMANDS), 'or')} after the command, in our direct chat. "
    "In a channel every thread is a separate conversation: mention me in it with "
    f"{_listed((f'/{one.name}' for one in COMMANDS if not one.private), 'or')}, or press Stop."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackResponse:
    """The answer to Slack."""

    acked: bool
    """False: no answer (or an error over HTTP), and Slack delivers again."""
    body: Mapping[str, Any] | None = None
    after: Callable[[], Awaitable[None]] | None = None
    """Work that remains after the ack is sent."""


class Dispatcher:
    """One bolt app that passes items to one gateway."""

    def __init__(
        self,
        *,
        settings: SlackOptions,
        bot: Bot,
        on_inbound: OnInbound,
        after_press: AfterPress,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._bot = bot
        self._on_inbound = on_inbound
        self._after_press = after_press
        self._clock = clock
        self._app = AsyncApp(
            logger=quiet_logger(),
            name="parlour",
            authorize=_authorize(settings, bot),
            client=AsyncWebClient(base_url=settings.api_url, retry_handlers=[], logger=quiet_logger()),
            process_before_response=True,
            # The receivers have verified the request, and the parsers drop the bot's own messages.
            request_verification_enabled=False,
            ignoring_self_events_enabled=False,
            ssl_check_enabled=False,
            url_verification_enabled=False,
            attaching_function_token_enabled=False,
            attaching_conversation_kwargs_enabled=False,
        )
        self._app.event(_ANYTHING)(self._event)
        self._app.action(_ANYTHING)(self._press)
        self._app.command(_ANYTHING)(self._command)
        self._app.error(self._failed)

    async def dispatch(self, payload: Payload) -> SlackResponse:
        """Process one payload. A payload without a listener or a meaning is acknowledged and dropped."""
        if self._means_nothing(payload):
            return SlackResponse(acked=True)
        try:
            request = AsyncBoltRequest(mode="socket_mode", body=dict(payload))
            response = await self._app.async_dispatch(request)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            # Bolt parses a payload before any listener gets it. An unreadable one stays unreadable when it
            # is delivered again; a listener's exception goes to `_failed` instead.
            _log.warning("a payload was not readable", extra={"error": type(error).__name__})
            return SlackResponse(acked=True)
        if response.status >= 500:
            return SlackResponse(acked=False)
        body = response.body if response.status == 200 else ""
        return SlackResponse(
            acked=True,
            body={"response_type": "ephemeral", "text": body} if body else None,
            after=request.context.get(_AFTER),
        )

    def _means_nothing(self, payload: Payload) -> bool:
        """Whether to drop the payload. Most events are the bot's own posts and edits; a malformed press would
        make Bolt fail at every delivery. An app installed in several workspaces receives the events of all of
        them on its sockets, but this bot can answer in only one."""
        teams = teams_of(payload)
        if teams and self._bot.team not in teams:
            return True
        match payload.get("type"):
            case "event_callback":
                return self._parsed(payload) is None
            case "block_actions":
                return parse_press(payload, self._bot, self._settings.account) is None
            case _:
                return False

    # -- listeners: bolt passes arguments by their names --------------------------------------------

    async def _event(self, body: dict[str, Any]) -> None:
        item = self._parsed(body)
        if item is not None:
            await self._on_inbound(item)

    def _parsed(self, payload: Payload) -> Inbound | None:
        return parse_event(payload, self._bot, self._settings.account)

    async def _press(self, ack: AsyncAck, body: dict[str, Any], context: AsyncBoltContext) -> None:
        item = parse_press(body, self._bot, self._settings.account)
        if item is not None:
            acceptance = await self._on_inbound(item)
            context[_AFTER] = lambda: self._after_press(body, item, acceptance)
        await ack()

    async def _command(self, ack: AsyncAck, body: dict[str, Any]) -> None:
        item = parse_slash(body, self._bot, self._settings.account, now=self._clock.now())
        if item is None:
            await ack(USAGE)
            return
        acceptance = await self._on_inbound(item)
        refused = acceptance.status == "refused"
        await ack(escaped(acceptance.reason) if refused else _words_for(item.name))

    async def _failed(self, error: Exception) -> None:
        """Leave the error to Bolt, which answers 500, so that Slack delivers again."""
        _log.warning("an item was not taken", extra={"error": type(error).__name__})


def _words_for(command: CommandName) -> str:
    return _COMMAND_WORDS.get(command, _COMMAND_WORDS_OTHERWISE)


def _authorize(settings: SlackOptions, bot: Bot) -> Callable[..., Awaitable[AuthorizeResult]]:
    """The bot's identity for Bolt, without a request to Slack for each payload."""

    async def authorize() -> AuthorizeResult:
        return AuthorizeResult(
            enterprise_id=None,
            team_id=bot.team,
            bot_id=bot.bot,
            bot_user_id=bot.user,
            bot_token=settings.bot_token().strip(),
        )

    return authorize
