"""The signals between the parts of a gateway. Values only: each can be sent as JSON (`codec`).

A signal reports what is already in the store, so none is needed for a correct result: one that is lost costs
time, or the live view of an answer.
"""

from __future__ import annotations

from pipeline.domain.events import PipelineEvent
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import AccountKey, ThreadKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """`thread`, an encoded ThreadKey, may have an unfinished entry."""

    thread: str
    asked: int = 0
    """0 if each worker gets it; else only one does, and this many were asked, with that one."""
    held: bool = False
    """Only the worker that has the thread needs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """The process that sends this runs turns."""

    room: int
    """How many more it could run now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopBefore:
    """A /stop or a Stop button: end the running turn of `thread` if its entry came before `seq`."""

    thread: str
    seq: int
    """The inbox number of the stop."""
    cancelled: int
    """How many waiting entries the stop has cancelled in the store."""
    heartbeats: int = 0
    """How many heartbeats, whose results the thread gets, the stop has cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """The message of one entry was edited or deleted, or its run is stopped: end its turn."""

    thread: str
    seq: int
    silent: bool = True
    """A turn that has not begun ends without a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupt:
    """A barge-in: end the running turn of `thread` if its entry came before `seq` and it began by `at`."""

    thread: str
    seq: int
    at: float
    """Unix time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The question of a turn that waits during its run has an answer in the store."""

    thread: str
    interaction_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Another process has work on `thread` that is no turn: its owner releases it if it has none."""

    thread: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaWanted:
    """A turn of `thread` needs a file of its platform: the process that has the account fetches it."""

    thread: str
    blob: str
    """The name under which the file is to be in the store."""
    handle: str
    """What the adapter needs to find the file, as in its `MediaRef`."""
    mime: str = ""
    file_kind: str = "file"
    max_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaReady:
    """The file `blob` is in the store, or cannot be fetched."""

    thread: str
    blob: str
    problem: str = ""
    """Words for the person who sent it."""


Control = StopBefore | Withdrawn | Interrupt | Answered | Release | MediaWanted | MediaReady
"""What the process is sent that has a thread, or its account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSignal:
    """A control and the owner that it is for."""

    owner: str
    control: Control


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTurn:
    """A running turn, with what showing its answer needs of the answered message."""

    thread: ThreadKey
    message_id: str
    fence: int
    """The fence of the lease under which the turn runs. Events of an older lease are not shown."""
    reply_handle: str = ""
    """The handle of the answered message, as its adapter made it."""
    private: bool = True
    """Whether the chat is a direct one with one person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEvent:
    """A live event of a turn."""

    turn: LiveTurn
    seq: int
    """Its place among the events of this turn under this fence, from 1."""
    event: PipelineEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxReady:
    """The outbox holds a reply to send on `account`."""

    account: AccountKey
    row_id: int
    """The newest such row; others may have been added since the last signal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The log of `thread` has a visible entry that no event and no reply reports."""

    thread: ThreadKey
    entry_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A book of the store has changed, of which processes keep copies; or one thing in it, by its key."""

    book: str
    key: str = ""


Signal = Changed | Wake | Here | ControlSignal | TurnEvent | OutboxReady | Recorded
