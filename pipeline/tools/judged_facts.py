"""Keep facts about people only where the information flow lets the conversation's data go to the memory."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pipeline.runtime.ports import FactBook
from pipeline.runtime.scope import TurnScope
from pipeline.shield.shield import Shield

_log = logging.getLogger(__name__)


class JudgedFacts:
    """The FactBook in front of another one, `book`: a new conversation gets the facts without the labels of
    the one that they were taken from."""

    def __init__(self, book: FactBook, shield: Shield) -> None:
        self._book = book
        self._shield = shield

    async def remember(self, scope: TurnScope, facts: Sequence[str]) -> None:
        """See `FactBook.remember`."""
        if why := await self._shield.memory_problem(scope.session_id, scope.mode):
            _log.info("no facts are kept of a conversation", extra={"reason": why})
            return
        await self._book.remember(scope, facts)
