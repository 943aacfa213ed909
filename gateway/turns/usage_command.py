"""Run the command /usage: the tokens and the cost of a person."""

from __future__ import annotations

from gateway.access.token_budgets import DailyBudgets
from gateway.people.directory import PersonDirectory
from gateway.storage.usage import Spent
from gateway.turns.journal import StoreJournal
from pipeline.domain.messages import SessionCommand

_IN_A_ROOM = "Others read along here. Send `/usage` to me in private."
_USAGE = "Today you have used {today}, and this month {month}. Days begin at midnight UTC."
_LIMIT = "\n\nYour limit is {limit:,} tokens a day."
_LINKED = "\n\nThis counts all chats that are linked with this one."
_KNOWN_PRICES = "\n\nThe cost is that of the answers whose price is known."
_NO_PRICE = "\n\nThe cost is not known: the model has no price, or its provider reports none."


class UsageCommand:
    """Runs the command in all threads."""

    def __init__(self, budgets: DailyBudgets, people: PersonDirectory) -> None:
        self._budgets = budgets
        self._people = people

    async def run(self, command: SessionCommand, journal: StoreJournal) -> None:
        """Show what the author has used. Raises StorageError."""
        if not command.private:
            await journal.commit_notice(_IN_A_ROOM)
            return
        thread = command.thread
        used = await self._budgets.used_by(thread, command.author.id)
        words = _USAGE.format(today=_amount(used.today), month=_amount(used.month))
        if used.limit:
            words += _LIMIT.format(limit=used.limit)
        if used.month.tokens:
            words += _KNOWN_PRICES if used.month.cost else _NO_PRICE
        if self._people.linked_as(*thread.account_key, command.author.id):
            words += _LINKED
        await journal.commit_notice(words)


def _amount(spent: Spent) -> str:
    tokens = "1 token" if spent.tokens == 1 else f"{spent.tokens:,} tokens"
    if not spent.cost:
        return tokens
    return f"{tokens} (${spent.cost:.2f})" if spent.cost >= 1 else f"{tokens} (${spent.cost:.4f})"
