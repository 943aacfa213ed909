"""The rule for bursts and steering: which waiting messages a running turn may answer too.

Not here: when a message joins a turn (`arrivals`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Literal

from gateway.agents.agent_book import Agent, AgentBook
from gateway.storage.ports import InboxEntry
from gateway.turns.sessions import SessionState, SessionView
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import ApprovalReply, InboundMessage, SessionCommand

MOST_JOINED = 20
"""Messages that one turn answers beside its first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstRules:
    """The settings of `[turn]` for messages that come close together or during a turn."""

    merge: bool = True
    """Messages of a burst become one turn."""
    window_s: float = 1.2
    """Seconds after a message within which the next one belongs to the same burst."""
    while_busy: Literal["steer", "queue", "interrupt"] = "steer"
    """What happens to a message that comes during a turn and is not part of its burst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinChecks:
    """What decides, beside the messages themselves, whether one may join a turn."""

    same_agent: Callable[[InboundMessage], bool]
    refused: Callable[[InboundMessage, Sequence[float]], bool]
    """Whether the agent's intake would refuse the message by itself, if others of its author arrived at these
    Unix times in addition to those of the session."""
    passes_gate: Callable[[InboundMessage], Awaitable[bool]]
    """Whether the agent's gate passes a message for a run that it has passed already."""
    is_withdrawn: Callable[[int], bool]
    """Whether the message of the entry with that seq was edited or deleted."""


def may_join(first: InboxEntry, other: InboxEntry) -> bool:
    """Whether `other` may be answered in the turn of the earlier entry `first`: two ordinary messages of one
    author with equal rights. Commands, answers, edits, and words of other people never join."""
    mine, later = first.item, other.item
    if not (isinstance(mine, InboundMessage) and isinstance(later, InboundMessage)):
        return False
    if (mine.author.id, mine.private, mine.mode) != (later.author.id, later.private, later.mode):
        return False
    fresh = other.attempts == 0 and not other.cancelled and not other.joined
    return fresh and _is_plain(mine) and _is_plain(later)


def _is_plain(item: InboundMessage) -> bool:
    """Whether the message has no special rights or duties."""
    unasked = item.if_named or item.may_decline
    special = item.edited or unasked or item.answers or bool(item.refusal)
    # Forwarded words, and a quote in a room, are another person's: they stay apart from the author's own.
    foreign = item.forwarded or bool(item.passed_on) or (bool(item.quoted) and not item.private)
    return not (special or foreign or item.text.lstrip().startswith("/"))


def answering(
    agents: AgentBook, item: InboundMessage | ApprovalReply | SessionCommand, session: SessionState
) -> Agent:
    """The agent that answers the item in its session."""
    author, private = item.author.id, item.private
    return agents.answering(item.thread, author, private=private, chosen=session.agent)


def checks_for(
    agents: AgentBook,
    agent_name: Callable[[], str],
    first: InboxEntry,
    session: SessionState,
    arrivals: Sequence[float],
    withdrawn: Collection[int],
) -> JoinChecks:
    """The checks of the turn of `first`, which the agent of that recorded name answers. `arrivals`: when its
    author's messages before it came; `withdrawn`: the seqs of messages that were edited or deleted."""

    def agent() -> Agent:
        return agents.find(agent_name()) or agents.default

    def refused(item: InboundMessage, at: Sequence[float]) -> bool:
        earlier = arrivals if item is first.item else session.arrivals(item.author.id)
        return agent().pipeline.refuses(item, (*earlier, *at))

    async def passes_gate(item: InboundMessage) -> bool:
        return await agent().pipeline.passes(item, SessionView(session, item))

    return JoinChecks(
        same_agent=lambda item: answering(agents, item, session) is agent(),
        refused=refused,
        passes_gate=passes_gate,
        is_withdrawn=withdrawn.__contains__,
    )
