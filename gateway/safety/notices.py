"""Tell the operator of each crisis response in a chat that they name, without a word of the person.

A notice is a job of the commit that gives the response, so a process that dies loses none; the key of its
entry in the inbox prevents a second one. `gateway.scheduling.crisis_notices` does the jobs.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from gateway.config import Settings
from gateway.config.chat_place_rules import place_thread
from gateway.storage.crises import CrisisRecord
from gateway.storage.jobs import Job, NewJob
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Announcement, Author

NOTICE: Final = "crisis-notice"
"""The kind of the jobs. A job's key is that of its notice."""
EVERY_S: Final = 3_600
"""At most one notice a chat and level in each period of so many seconds."""
_ID_CHARS: Final = 12
_WORDS: Final = {2: "a clear wish to die or to harm oneself", 3: "imminent danger"}
_TEXT: Final = (
    "Crisis response, level {level} ({words}): agent {agent}, channel {channel}, {at} UTC. Record {record}, "
    "see `parlour crises`. Further ones of the same level in that chat are not reported within the hour."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeTarget:
    """The chat that gets the notices."""

    thread: ThreadKey


def notice_job(
    record: CrisisRecord, thread: ThreadKey, chat: str, agent: str, target: NoticeTarget
) -> NewJob:
    """The job that tells of `record`. `chat` is a keyed hash of the chat `thread`, of which the job names the
    channel alone."""
    return NewJob(
        kind=NOTICE,
        key=f"{chat}:{record.level}:{int(record.at) // EVERY_S}",
        thread=target.thread.encode(),
        due=record.at,
        body={
            "level": record.level,
            "agent": agent,
            "channel": thread.channel,
            "account": thread.account,
            "at": record.at,
            "record": record.id[:_ID_CHARS],
        },
    )


def notice_target(settings: Settings) -> NoticeTarget | None:
    """The chat that gets the notices; None for none."""
    thread = place_thread(settings, settings.safety.notice)
    return None if thread is None else NoticeTarget(thread=thread)


def announcement(job: Job) -> Announcement:
    """What the job posts. Raises InvalidInput, KeyError, TypeError, ValueError or OverflowError for a job
    that cannot be read."""
    body, thread = job.body, ThreadKey.decode(job.thread)
    at = float(body["at"])
    text = _TEXT.format(
        level=int(body["level"]),
        words=_WORDS[int(body["level"])],
        agent=body["agent"],
        channel=f"{body['channel']} ({body['account']})",
        at=datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M"),
        record=body["record"],
    )
    return Announcement(
        message_id=f"{NOTICE}_{job.key}",
        native_id=f"{NOTICE}_{job.key}",
        thread=thread,
        author=Author(id=thread.chat),
        received_at=at,
        text=text,
    )
