"""Daily budgets: limit the tokens and cost of a person, a chat and everybody; sums are kept in the store.

The check before a turn uses sums in memory that are written through, so it costs no read; where several
processes share the store it reads them, because the others write too. Concurrent turns may exceed a budget by
what they use: nothing is reserved. Without a limit only each person's use is counted,
in memory first, and written some seconds later. Not here: the number of messages per person
(`sender_rate_limit`).
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import date
from typing import Any

from gateway.config.agent import BudgetSettings
from gateway.storage.usage import Spent, UsageBook
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey, own_person
from pipeline.runtime.ports import Allowance
from pipeline.runtime.scope import TurnScope

_EVERYBODY = "everybody"
_MAX_KNOWN = 10_000
"""The most sums kept in memory; others are read from the store again."""
_NONE_WORDS = "{whose} budget for today is used up. It begins again at midnight UTC, in {wait}."
_CHEAPER_WORDS = "{whose} budget for today is nearly used up: a smaller model answers."
_FULL = Allowance()
_DAY_S = 86_400
_EPOCH = date(1970, 1, 1).toordinal()
_WRITE_AFTER_S = 10.0
"""How long use without limits is only in memory. A crash loses it."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit:
    scope: str
    whose: str
    tokens: int = 0
    cost: float = 0.0

    def used(self, spent: Spent) -> float:
        """The fraction that is used up; 1 or more when nothing is left."""
        tokens = spent.tokens / self.tokens if self.tokens else 0.0
        cost = spent.cost / self.cost if self.cost else 0.0
        return max(tokens, cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a person has used."""

    today: Spent
    month: Spent
    """Since the first day of this month, today included."""
    limit: int = 0
    """The person's tokens a day; 0 without a limit."""


class DailyBudgets:
    """The pipeline's `Budgets`. A day is one of UTC."""

    def __init__(
        self,
        *,
        usage: UsageBook,
        clock: Clock,
        settings: BudgetSettings,
        agents: Mapping[str, int] | None = None,
        person_of: Callable[[ThreadKey, str], str] = own_person,
        on_spent: Callable[[str, int, float], None] = lambda _channel, _tokens, _cost: None,
        spawn: Callable[[Coroutine[Any, Any, None]], object] | None = None,
        shared: bool = False,
    ) -> None:
        """`agents` gives the tokens a day of each agent that has a limit, `person_of` the key of the person
        that a user of an account is. `on_spent` is called with the channel, tokens and dollars of each call,
        also without limits. `spawn` starts a task; without it, use is written when it is read or at `flush`.
        `shared`: other processes count too.
        """
        self._on_spent = on_spent
        self._usage = usage
        self._shared = shared
        self._clock = clock
        self._settings = settings
        self._agents = agents or {}
        self._person_of = person_of
        self._bounded = bool(self._agents) or bool(
            settings.person_tokens or settings.chat_tokens or settings.tokens or settings.cost
        )
        self._day = ""
        self._sums: dict[str, Spent] = {}
        self._lock = asyncio.Lock()
        self._spawn = spawn
        self._unwritten: dict[tuple[str, str], Spent] = {}
        """Use without limits, by day and scope."""
        self._will_write = False

    async def allowance(self, scope: TurnScope) -> Allowance:
        """What a turn that begins now may spend. Raises StorageError."""
        if not self._bounded:
            return _FULL
        limits = self._limits(scope)
        sums = await self._of([limit.scope for limit in limits])
        worst = max(limits, key=lambda limit: limit.used(sums[limit.scope]))
        used = worst.used(sums[worst.scope])
        if used >= 1:
            return Allowance(model="none", words=_NONE_WORDS.format(whose=worst.whose, wait=self._wait()))
        if used >= self._settings.cheaper_from and self._settings.cheaper_model is not None:
            return Allowance(model="cheaper", words=_CHEAPER_WORDS.format(whose=worst.whose))
        return Allowance()

    async def spent(self, scope: TurnScope, *, tokens: int, cost: float) -> None:
        """Count a model call: for an answer, decision, summary, title or sub-agent. Raises StorageError."""
        self._on_spent(scope.thread.channel, tokens, cost)
        if tokens <= 0 and cost <= 0:
            return
        if not self._bounded:
            self._note(self._person_of(scope.thread, scope.author.id), tokens, cost)
            return
        more = Spent(tokens=tokens, cost=cost)
        # One at a time: a sum that is being read must not miss a concurrent addition.
        async with self._lock:
            scopes = [limit.scope for limit in self._limits(scope)]
            day = await self._begin_day()
            # What other processes have spent counts too.
            sums = await self._usage.add(day, scopes, more)
            self._sums |= {one: sums[one] for one in scopes if one in self._sums}

    async def used_by(self, thread: ThreadKey, user: str) -> Used:
        """What the person that `user` is on the account of `thread` has used. Raises StorageError."""
        await self.flush()
        person, day = self._person_of(thread, user), self.today()
        return Used(
            today=(await self._usage.of(day, (person,)))[person],
            month=await self._usage.since(_first_of_month(day), person),
            limit=self._settings.person_tokens,
        )

    async def flush(self) -> None:
        """Write the use that is only in memory. Raises StorageError."""
        async with self._lock:
            await self._write()

    def today(self) -> str:
        """The day that counts now, YYYY-MM-DD."""
        return _day(int(self._clock.now() // _DAY_S))

    @asynccontextmanager
    async def moving(self) -> AsyncIterator[None]:
        """Within it nothing is counted, so that sums can be moved in the store; then they are read again."""
        async with self._lock:
            await self._write()
            try:
                yield
            finally:
                self._sums.clear()

    def _note(self, person: str, tokens: int, cost: float) -> None:
        key = (self.today(), person)
        known = self._unwritten.get(key, Spent())
        self._unwritten[key] = Spent(tokens=known.tokens + tokens, cost=known.cost + cost)
        if self._spawn is not None and not self._will_write:
            self._will_write = True
            self._spawn(self._write_later())

    async def _write_later(self) -> None:
        await self._clock.sleep(_WRITE_AFTER_S)
        self._will_write = False
        try:
            await self.flush()
        except StorageError as error:
            _log.warning("use is not written yet", extra={"reason": str(error)})

    async def _write(self) -> None:
        """Write what is only in memory. Call under the lock."""
        if self._unwritten:
            await self._begin_day()
        while self._unwritten:
            (day, person), spent = next(iter(self._unwritten.items()))
            await self._usage.add(day, [person], spent)
            left = self._unwritten.pop((day, person))
            if left != spent:
                # A call was counted meanwhile.
                more = Spent(tokens=left.tokens - spent.tokens, cost=left.cost - spent.cost)
                self._unwritten[day, person] = more

    def _limits(self, scope: TurnScope) -> tuple[_Limit, ...]:
        settings, thread = self._settings, scope.thread
        account = f"{thread.channel}:{thread.account}"
        own = self._agents.get(scope.agent, 0)
        agent = (_Limit(scope=f"agent:{scope.agent}", whose="This agent's", tokens=own),) if own else ()
        return (
            *agent,
            _Limit(
                # The person, in a room too, where `scope.owner` is the room.
                scope=self._person_of(thread, scope.author.id),
                whose="Your",
                tokens=settings.person_tokens,
            ),
            _Limit(scope=f"{account}:chat:{thread.chat}", whose="This chat's", tokens=settings.chat_tokens),
            _Limit(scope=_EVERYBODY, whose="The bot's", tokens=settings.tokens, cost=settings.cost),
        )

    async def _of(self, scopes: Sequence[str]) -> dict[str, Spent]:
        if self._shared or self._day != self.today() or any(scope not in self._sums for scope in scopes):
            async with self._lock:
                day = await self._begin_day()
                if self._shared or len(self._sums) > _MAX_KNOWN:
                    self._sums.clear()
                unknown = [scope for scope in scopes if scope not in self._sums]
                self._sums |= await self._usage.of(day, unknown)
                return {scope: self._sums[scope] for scope in scopes}
        return {scope: self._sums[scope] for scope in scopes}

    async def _begin_day(self) -> str:
        """Today's date, after dropping the sums of earlier months. Call under the lock."""
        day = self.today()
        if day != self._day:
            await self._usage.forget_before(_first_of_month(day))
            self._sums.clear()
            self._day = day
        return day

    def _wait(self) -> str:
        left = 86_400 - int(self._clock.now()) % 86_400
        hours, minutes = round(left / 3600), -(-left // 60)
        if left >= 3600:
            return "1 hour" if hours == 1 else f"{hours} hours"
        return "a minute" if minutes <= 1 else f"{minutes} minutes"


@functools.lru_cache(maxsize=8)
def _day(number: int) -> str:
    """The day so many days after 1970 began, YYYY-MM-DD. Cached: each call of a model is of a day."""
    return date.fromordinal(_EPOCH + number).isoformat()


def _first_of_month(day: str) -> str:
    return f"{day[:7]}-01"
