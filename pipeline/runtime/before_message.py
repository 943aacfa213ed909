"""The port of a check that sees every accepted message before anything else decides about it.

Not here: whether a message is accepted at all; access and full queues come before.
"""

from __future__ import annotations

import logging
from typing import Final, Literal, Protocol

from pipeline.domain.errors import TurnFailed
from pipeline.domain.frozen import dataclass
from pipeline.runtime.context import RunContext

_log = logging.getLogger(__name__)

MessageKind = Literal["text", "speech", "command"]

NOT_CHECKED: Final = "not_checked"
"""The code of the error of a message that could not be checked; later turns do not see its words."""
_NOT_CHECKED = "I could not check this message, so I have not answered it. Please send it again."


class BeforeMessage(Protocol):
    """Sees the words of a message before commands, budgets, limits, open questions and the agent's graph."""

    async def reply(self, kind: MessageKind, context: RunContext) -> str:
        """The reply with which it takes the message over; empty to pass the message. `context.text` is the
        message. An error ends the message with readable words: it is not passed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortcut:
    """What a passed message leads to in place of a run of the graph."""

    words: str = ""
    """The reply; empty if the caller does the rest, as for a session command."""
    code: str = ""
    """That of the error whose text `words` is; empty for an ordinary reply."""


def not_checked(error: BaseException) -> TurnFailed:
    """The visible error of a message that could not be checked because of `error`."""
    _log.error("a message gate fails, and the message is not passed", exc_info=error)
    return TurnFailed(NOT_CHECKED, _NOT_CHECKED, recoverable=True)
