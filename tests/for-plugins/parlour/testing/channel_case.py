"""The interface with which the channel contract tests any channel: a ContractCase.

A case has the adapter running, an inbox, and one person, Ann, who writes, speaks, presses buttons and reads.
A plug-in's author writes one for the channel; `posting_case` does most of it for a posting channel.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable

from adapters.channel import Acceptance, Channel
from parlour.testing.fakes import MemoryInbox
from pipeline.domain.events import ApprovalRequired
from pipeline.domain.messages import Inbound, InboundMessage
from pipeline.domain.ports import EventSender
from pipeline.domain.timeline import EntryRole

_PATIENCE_S = 60.0


class WatchedInbox(MemoryInbox):
    """An inbox that can be waited on. `offers` is everything that the channel brought, repeats included."""

    def __init__(self) -> None:
        super().__init__()
        self.offers: list[Inbound] = []
        self._changed = asyncio.Event()

    async def __call__(self, item: Inbound) -> Acceptance:
        self.offers.append(item)
        try:
            return await super().__call__(item)
        finally:
            self._changed.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds()`; checked whenever something was brought."""
        async with asyncio.timeout(_PATIENCE_S):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def message(self, text: str) -> InboundMessage:
        """The newest message with these words, waited for."""

        def found() -> list[InboundMessage]:
            messages = [item for item in self.offers if isinstance(item, InboundMessage)]
            return [item for item in messages if item.text == text]

        await self.until(lambda: bool(found()))
        return found()[-1]


class ContractCase(ABC):
    """One running channel. `async with` it through its factory only."""

    adapter: Channel
    inbox: WatchedInbox
    secrets: tuple[str, ...] = ()
    """Texts that no output of the channel may contain."""
    rooms = True
    """Whether several people can be in one chat."""
    redelivers = True
    """Whether an event that was not acknowledged comes again."""
    buttons = True
    """Whether a question's options can be pressed; else they are typed."""
    asking_s = 1.0
    """Seconds of the gateway's time until a question is visible as a whole."""
    files = True
    """Whether an answer of too many messages becomes a file; else it is cut, and says so."""

    @abstractmethod
    async def stop(self) -> None:
        """Cancel `run`, as the gateway does, and wait for its end."""

    @abstractmethod
    async def write(self, text: str, *, room: bool = False, addressed: bool = True) -> InboundMessage:
        """Ann writes `text`, in her own chat with the bot or in a room; what came of it."""

    @abstractmethod
    async def write_twice(self, text: str) -> None:
        """Ann writes once, and the platform delivers it twice."""

    @abstractmethod
    async def speak(self, audio: bytes) -> InboundMessage:
        """Ann sends a voice note."""

    @abstractmethod
    async def hear_others(self) -> None:
        """The bot is informed about its own words and about another bot's."""

    @abstractmethod
    async def hear_nonsense(self) -> None:
        """The bot gets what it cannot know: unknown kinds, and known ones with their parts wrong."""

    @abstractmethod
    def sender(self, item: InboundMessage) -> EventSender:
        """Where the live events of the turn that answers `item` go."""

    @abstractmethod
    async def deliver(self, item: InboundMessage, text: str, role: EntryRole = "assistant") -> None:
        """See a durable reply through."""

    @abstractmethod
    async def pass_time(self, seconds: float) -> None:
        """Let the gateway's time pass."""

    @abstractmethod
    async def answers(self) -> list[str]:
        """The bot's messages as Ann sees them now, each as often as she sees it; without what vanishes by
        itself."""

    @abstractmethod
    async def press(self, question: ApprovalRequired, option: str) -> str:
        """Ann picks an option of a question that she sees, in the channel's own way: a button, or the typed
        word. Returns what the channel itself shows her. Raises LookupError when it is not offered."""


async def ask(case: ContractCase, item: InboundMessage, interaction_id: str) -> ApprovalRequired:
    """The turn that answers `item` asks Ann, and waits for her."""
    question = ApprovalRequired(
        session_id="s",
        message_id=item.message_id,
        interaction_id=interaction_id,
        tool_name="shell",
        reasoning="it removes a folder",
        options=("allow", "deny"),
        timeout_s=60.0,
    )
    await case.sender(item).send_event(question)
    await case.pass_time(case.asking_s)
    return question
