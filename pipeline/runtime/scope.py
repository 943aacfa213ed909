"""The scope of a turn: its message's facts for tools, budgets and prompts, and its event sender."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import field

from pipeline.domain.events import PipelineEvent
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey, identity_key, room_owner
from pipeline.domain.messages import Author, Mode
from pipeline.runtime.attachments import Unstored
from pipeline.runtime.foreign_text import ForeignWords
from pipeline.runtime.reading import Reading
from pipeline.runtime.turn_files import TurnFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnScope:
    """One turn's identity."""

    session_id: str
    message_id: str
    """The message of the run."""
    thread: ThreadKey
    author: Author
    """The author of that message: only their rights count."""
    send: Callable[[PipelineEvent], Awaitable[None]]
    """Sends an event to the clients."""
    person: str = ""
    """The key of the author as a person, the same for all identities that the author has linked. Empty: that
    of the author's identity alone."""
    private: bool = True
    mode: Mode = "normal"
    agent: str = ""
    """The agent that answers; empty for the default one."""
    depth: int = 0
    """0 for the turn itself, 1 for its sub-agents."""
    groups: tuple[str, ...] | None = None
    """The only tool groups that may be loaded; None for all."""
    unattended: bool = False
    """No one can be asked: what a person would have to allow is refused."""
    waiting: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    """Enter it while waiting for a person: it pauses the turn's deadline and frees its slot for others."""
    delegating: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    """Enter it while sub-agents work: it pauses the turn's deadline, as sub-agents have their own."""
    unstored: Mapping[str, Unstored] = field(default_factory=dict, compare=False, repr=False)
    """The files of a message off the record, by their ids."""
    foreign: ForeignWords = field(default_factory=ForeignWords, compare=False)
    """The foreign text that the turn has read so far; shared with sub-agents."""
    unasked: list[str] = field(default_factory=list, compare=False)
    """What was not done because no one could be asked, a sentence each; shared with sub-agents."""
    files: TurnFiles = field(default_factory=TurnFiles, compare=False)
    """The files that the turn will send with its answer; shared with sub-agents."""
    reading: Reading = field(default_factory=Reading, compare=False, repr=False)
    """What the running tool may read of what its arguments do not name."""

    @property
    def owner(self) -> str:
        """The owner of notes, files, memory and a time zone: the person in a private chat, on every channel
        that they have linked; otherwise the room. Different for two people and for two rooms."""
        return self.person if self.private and self.person else self.chat_owner

    @property
    def chat_owner(self) -> str:
        """The owner of what stays in its chats, such as reminders: as `owner`, for the author's identity on
        this account alone."""
        place = self.thread
        if self.private:
            return identity_key(place.channel, place.account, self.author.id)
        return room_owner(place)


async def ignore_event(_event: PipelineEvent) -> None:
    """A `send` that does nothing, for work outside a turn."""
