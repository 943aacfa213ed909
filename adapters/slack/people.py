"""Look up people's names for the ids in Slack's messages, and cache them for an hour."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable
from dataclasses import replace

from adapters.json_fields import mapping, text
from adapters.slack.calls import Calls
from adapters.slack.failures import CallFailed
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import Author, InboundMessage

_log = logging.getLogger(__name__)

_KEPT_S = 3600.0
_TRY_AGAIN_S = 300.0
_MOST_KEPT = 2_000
_MOST_AT_ONCE = 30
"""The most lookups for one message or one chat: further ids stay ids."""
_SIDE_BY_SIDE = 5
_NAME_CHARS = 80
_MENTION = re.compile(r"@([UW][A-Z0-9]{2,30})\b")
"""As `spoken.plain_words` writes a mention without a name."""
_NO_SCOPE = (
    "Slack does not tell people's names: add the scope users:read on the page OAuth & Permissions and "
    "install the app again"
)


@dataclass(frozen=True, slots=True)
class _Known:
    name: str
    """Empty where Slack returns none."""
    until: float


class People:
    """The names of one workspace's people."""

    def __init__(self, calls: Calls, clock: Clock) -> None:
        self._calls = calls
        self._clock = clock
        self._known = BoundedDict[str, _Known](_MOST_KEPT)
        self._slots = asyncio.Semaphore(_SIDE_BY_SIDE)
        self._refused_until = 0.0
        """Until this time nothing is looked up, because Slack refused the permission."""

    async def named(self, message: InboundMessage) -> InboundMessage:
        """The message with names in place of ids, as far as they can be found."""
        texts = (message.text, message.quoted, message.passed_on)
        names = await self.names((message.author.id, *mentioned(*texts)))
        author = Author(id=message.author.id, name=names.get(message.author.id) or message.author.name)
        text, quoted, passed_on = (with_names(one, names) for one in texts)
        return replace(message, author=author, text=text, quoted=quoted, passed_on=passed_on)

    async def names(self, users: Iterable[str]) -> dict[str, str]:
        """Names by id, without those that have none."""
        wanted = list(dict.fromkeys(users))[:_MOST_AT_ONCE]
        async with asyncio.TaskGroup() as group:
            for user in wanted:
                group.create_task(self._look_up(user))
        found = {user: self._known[user].name for user in wanted if user in self._known}
        return {user: name for user, name in found.items() if name}

    async def _look_up(self, user: str) -> None:
        async with self._slots:
            now = self._clock.monotonic()
            known = self._known.get(user)
            if (known is not None and now < known.until) or now < self._refused_until:
                return
            try:
                answer = await self._calls.run("users.info", lambda client: client.users_info(user=user))
            except CallFailed as refused:
                self._note_refusal(user, refused, now)
                return
            self._known[user] = _Known(_name_of(mapping(answer.get("user"))), now + _KEPT_S)

    def _note_refusal(self, user: str, refused: CallFailed, now: float) -> None:
        """Keep an older name, and delay the next lookup."""
        if refused.failure.kind in ("auth", "permission"):
            if refused.code == "missing_scope":
                _log.warning("names could not be looked up", extra={"reason": _NO_SCOPE})
            self._refused_until = now + _TRY_AGAIN_S
        known = self._known.get(user)
        self._known[user] = _Known(known.name if known else "", now + _TRY_AGAIN_S)


def mentioned(*texts: str) -> list[str]:
    """The ids that the texts mention without a name."""
    return [found for text in texts for found in _MENTION.findall(text)]


def with_names(text: str, names: dict[str, str]) -> str:
    """The text with names in place of the ids that `names` knows."""
    return _MENTION.sub(lambda found: f"@{names.get(found[1], found[1])}", text)


def _name_of(user: object) -> str:
    """The name that others see: the display name, or another one where it is empty."""
    profile = mapping(mapping(user).get("profile"))
    for value in (profile.get("display_name"), profile.get("real_name"), mapping(user).get("name")):
        if name := " ".join(text(value, most=_NAME_CHARS).split()):
            return name
    return ""
