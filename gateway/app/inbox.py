"""Build the inbox, which accepts what every channel brings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from adapters.channel import PostingChannel
from gateway.access.policy import AccessPolicy
from gateway.access.sender_rate_limit import RateLimit
from gateway.agents.agent_book import AgentBook
from gateway.app.components import Foundation
from gateway.app.tools import SharedTools
from gateway.attachments.erasure import FileErasure
from gateway.channels.registry import key_of
from gateway.delivery.outbox import Delivery
from gateway.delivery.unanswered_questions import UnansweredQuestions
from gateway.ingress.inbox import Inbox
from gateway.ingress.room_history import ChannelRooms
from gateway.interactions.word_questions import WordQuestions
from gateway.turns.message_gates import MessageGates
from gateway.turns.runner import TurnRunner
from gateway.turns.worker import Worker


def build_inbox(
    base: Foundation,
    access: AccessPolicy,
    worker: Worker,
    owner_of: Callable[[str], str],
    delivery: Delivery,
    tools: SharedTools,
    rooms: ChannelRooms,
    agents: AgentBook,
    turns: TurnRunner,
    words: WordQuestions,
    unanswered: UnansweredQuestions,
) -> Inbox:
    """The inbox of all channels. `owner_of` names the process that runs a thread's turns."""
    a_minute = base.settings.limits.messages_per_minute
    start = partial(base.tasks.background.spawn, name="counted messages")
    return Inbox(
        store=base.store,
        access=access,
        turns=worker,
        bus=base.bus,
        owner_of=owner_of,
        clock=base.clock,
        telemetry=base.telemetry,
        crash_labels=base.crash_labels,
        max_queue_per_thread=base.settings.turn.max_queue_per_thread,
        posting=[key_of(channel) for channel in base.channels if isinstance(channel, PostingChannel)],
        say=delivery.say,
        quota=RateLimit(a_minute, base.clock, base.counts, start) if a_minute else None,
        waiting=tools.approvals,
        on_unaddressed=rooms.note_unaddressed,
        on_taken=base.taken.reporter(base.channels),
        redactor=base.redactor,
        gates=MessageGates(agents, turns.open_session),
        beyond=RateLimit(a_minute, base.clock) if a_minute else None,
        on_ended=FileErasure(base.store, base.files).ended,
        words=words,
        on_stopped=unanswered.stopped,
    )
