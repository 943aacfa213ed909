"""Names under which heartbeats are kept: their state, their news, and what people have set for theirs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from pipeline.domain.ids import ThreadKey, identity_key
from pipeline.domain.messages import HeartbeatDue

HEARTBEAT_NEWS: Final = "heartbeat-news"
"""The kind of the jobs that tell a person something. A job's key is that of the heartbeat's message."""
WATCH: Final = "watch"
"""The kind of the jobs that keep what is watched. A job's key is the watch's id."""
HEARTBEAT_SETTINGS: Final = "heartbeat"
"""The kind of the jobs that keep what a person has set for their heartbeats: `off` and `to`. The key is the
owner's."""
_STATE: Final = "heartbeat"


def outcome_words(status: str, cycles: int) -> str:
    """How a heartbeat ended, for people: its status and how many cycles it had."""
    # One that had its most cycles and was not done still has the status of one that runs.
    shown = "not finished" if status == "running" else status
    return f"{shown}, {cycles} cycle{'' if cycles == 1 else 's'}"


def owner_of(due: HeartbeatDue) -> str:
    """Who owns what the heartbeat leaves: its person's identity on that account."""
    thread = due.thread
    return identity_key(thread.channel, thread.account, due.author.id)


def state_name(thread: ThreadKey) -> str:
    """The name of the kept state of the heartbeats that run in a thread (`ids.heartbeat_thread`)."""
    return state_in(thread.encode())


def state_in(thread: str) -> str:
    """As `state_name`, for an encoded thread key."""
    return f"{_STATE}:{thread}"


def session_of(message_id: str) -> str:
    """The session of the heartbeat with that message id: each has a separate conversation."""
    return f"ses_{message_id}"


def tasks_hash(tasks: Sequence[str]) -> str:
    """What is compared to know whether tasks are the same."""
    return hashlib.sha256("\n".join(tasks).encode("utf-8", "surrogatepass")).hexdigest()[:24]
