"""The information flow: what a conversation has read, and where an action may take it.

The labels of a conversation only rise; a new conversation has none. They are durable, so that a restart does
not lower them, except off the record, where nothing is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import Mode
from pipeline.shield.action_types import EXTERNAL, PRIVATE_READS
from pipeline.shield.globs import normal_path
from pipeline.shield.levels import UNLABELLED, Labels, Level
from pipeline.shield.ports import TaintBook
from pipeline.shield.proposal import Proposal
from pipeline.shield.rules import Flow, Policy

FlowMode = Literal["enforce", "audit"]
_MOST_SESSIONS = 2_000
_UNNAMED = "something off the record"
_OWN = {
    "read_file": "your files",
    "send_file": "your files",
    "read_note": "your notes",
    "read_attachment": "files you sent",
    "read_schedule": "your reminders",
    "command_read": "files in this conversation's folder",
}
_TO_OTHERS = (
    "this conversation has read what belongs to one person alone ({sources}), and this would reach others"
)
_BLOCKED = "this conversation has read something {level} ({sources}), which may not be sent to {sink}"
_ASKED = "this conversation has read something {level} ({sources})"
_CARRIES_OUT = (
    "this conversation has read your own data ({own}) and text from elsewhere ({foreign}), and this sends "
    "data out"
)
_COPIES = "a value holds what was read from your own data ({copied}), and this sends data out"
_AGAIN = "; send /new to begin a conversation without it"
_SINKS = {
    "people": "other people",
    "web": "the web",
    "mcp": "a tool of others",
    "commands": "a command",
    "memory": "the memory",
    "files": "a file",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowDecision:
    """Whether an action may take the conversation's data to its sink."""

    flow: Flow = "allow"
    reason: str = ""
    always: bool = False
    """It holds in the mode `audit` too."""
    each_time: bool = False
    """What a person has allowed for the conversation does not cover it."""


_ALLOWED = FlowDecision()


class Taints:
    """The labels of conversations: a cache over the book. `shared`: turns run in other processes too, which
    raise labels, so that the book is read each time; off the record the level is kept, without its sources.
    """

    def __init__(self, book: TaintBook, *, shared: bool = False) -> None:
        self._book = book
        self._shared = shared
        self._raising = asyncio.Lock()
        self._known = BoundedDict[str, Labels](_MOST_SESSIONS)

    async def of(self, proposal: Proposal) -> Labels:
        """The labels of the proposal's conversation. Raises StorageError."""
        return await self.of_session(proposal.session_id, proposal.mode)

    async def of_session(self, session: str, mode: Mode) -> Labels:
        """The labels of a conversation. Raises StorageError."""
        known = self._known.get(session)
        if known is None or self._shared:
            is_kept = mode != "otr" or self._shared
            known = await self._book.read(session) if is_kept else UNLABELLED
            # Something may have been noted while the book was read.
            known = known.joined(self._known.get(session, UNLABELLED))
            self._known[session] = known
        return known

    async def add(self, proposal: Proposal, labels: Labels) -> None:
        """Raise the labels of the conversation. Durable when it returns. Raises StorageError."""
        await self.add_to(proposal.session_id, labels, proposal.mode)

    async def add_to(self, session: str, labels: Labels, mode: Mode) -> None:
        """As `add`, for a conversation by its session."""
        if (await self.of_session(session, mode)).covers(labels):
            return
        async with self._raising:
            total = (await self.of_session(session, mode)).joined(labels)
            if mode != "otr":
                await self._book.write(session, total)
            elif self._shared:
                await self._book.write(session, _without_words(total))
            self._known[session] = total


def _without_words(labels: Labels) -> Labels:
    """The same labels, which name no source."""
    return replace(
        labels, sources=(_UNNAMED,) * bool(labels.sources), suspects=(_UNNAMED,) * bool(labels.suspects)
    )


def labels_of(proposal: Proposal, policy: Policy, read: Sequence[str] = ()) -> Labels:
    """The labels of a result: by the source rules for its path, tool and host, and for the files and notes
    `read` that the action does not name."""
    level, rule = policy.level_of(proposal)
    more = tuple(map(normal_path, read))
    for path in more:
        of_path, name = policy.level_of_path(path)
        level, rule = (of_path, name) if of_path > level else (level, rule)
    paths = proposal.paths or more
    private = proposal.private and proposal.built_in and proposal.type in PRIVATE_READS
    shared = bool(paths) and all(path.startswith("shared/") for path in paths)
    private = private and not shared
    if level is Level.PUBLIC and not private:
        return UNLABELLED
    name = f"{_OWN.get(proposal.type, proposal.tool)}" + (f", {rule}" if level else "")
    return Labels(level=level, private=private, sources=(name,))


def decided(proposal: Proposal, policy: Policy, labels: Labels, copied: tuple[str, ...] = ()) -> FlowDecision:
    """Whether the conversation's data may go to the proposal's sink. `copied` are the person's own sources of
    which a value of the proposal holds a part."""
    sink = proposal.sink
    if sink is None:
        return _ALLOWED
    flow = policy.flow(labels, sink)
    if flow == "allow" and not copied and not labels.private:
        return _ALLOWED
    sources = ", ".join(labels.sources) or "its source is not known any more"
    if sink == "people" and labels.private:
        words = _TO_OTHERS.format(sources=sources) + _AGAIN
        return FlowDecision(flow="block", reason=words, always=True)
    if flow == "block":
        words = _BLOCKED.format(level=labels.level.word, sources=sources, sink=_SINKS[sink])
        return FlowDecision(flow="block", reason=words + _AGAIN)
    if sink in EXTERNAL and copied:
        words = _COPIES.format(copied=", ".join(copied))
        return FlowDecision(flow="ask", reason=words, each_time=True)
    if sink in EXTERNAL and labels.private and proposal.foreign:
        words = _CARRIES_OUT.format(own=sources, foreign=", ".join(proposal.foreign))
        return FlowDecision(flow="ask", reason=words)
    if flow == "ask":
        return FlowDecision(flow="ask", reason=_ASKED.format(level=labels.level.word, sources=sources))
    return _ALLOWED
