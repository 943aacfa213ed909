"""For whom a turn works: what tools, budgets and prompts need to know of the message, and where events go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field

from pipeline.domain.events import PipelineEvent
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, Mode
from pipeline.runtime.foreign import ForeignWords


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnScope:
    """One turn's identity."""

    session_id: str
    message_id: str
    """The message whose run it is."""
    thread: ThreadKey
    author: Author
    """Who wrote that message: nobody else's rights count."""
    send: Callable[[PipelineEvent], Awaitable[None]]
    """Shows an event to whoever watches."""
    private: bool = True
    mode: Mode = "normal"
    depth: int = 0
    """0 for the turn itself, 1 for its sub-agents."""
    groups: tuple[str, ...] | None = None
    """The only tool groups that may be loaded; None for all that there are."""
    waiting: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    """Entered while a person is waited for: the turn's own clock stands still meanwhile, and its room is
    free for others."""
    delegating: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    """Entered while sub-agents work: the turn's own clock stands still, for theirs has a limit of its own."""
    foreign: ForeignWords = field(default_factory=ForeignWords, compare=False)
    """What of others' words the turn has read so far; sub-agents share it."""

    @property
    def owner(self) -> str:
        """Whose notes, reminders and files these are: the person's in a private chat, the room's elsewhere.
        Never two people's, and never the same on two accounts."""
        place = self.thread
        if self.private:
            return f"{place.channel}:{place.account}:user:{self.author.id}"
        return f"{place.channel}:{place.account}:room:{place.chat}"


async def nobody_watches(_event: PipelineEvent) -> None:
    """The `send` of work that is no turn, and shows nothing."""
