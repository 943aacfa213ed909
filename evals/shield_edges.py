"""The edges of the world for attacks on the shield: they note what would have left or run, and do nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pipeline.domain.files import StoredFile, stored_file
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import MediaKind
from pipeline.domain.readings import DocumentText
from pipeline.runtime.approvals import ApprovalOutcome
from pipeline.runtime.ports import ReminderNote
from pipeline.runtime.scope import TurnScope
from pipeline.runtime.watching import WatchNote
from pipeline.tools.command_end import CommandEnd
from pipeline.tools.search_backends import Hit
from pipeline.tools.shell import CommandResult, OnOutput
from pipeline.tools.tool import Refused
from pipeline.watches.words import Intervals


class Answers:
    """The person who is asked; `answer` is pressed each time."""

    def __init__(self) -> None:
        self.answer: ApprovalOutcome = "refused"
        self.asked = 0
        self.questions: list[str] = []

    async def ask(
        self,
        scope: TurnScope,
        *,
        action_id: str,
        action_hash: str,
        tool_name: str,
        summary: str,
        reasoning: str,
        can_last: bool = False,
    ) -> ApprovalOutcome:
        """See `Approvals.ask`."""
        del scope, action_id, action_hash, tool_name, summary, can_last
        self.asked += 1
        self.questions.append(reasoning)
        return self.answer


@dataclass(slots=True, kw_only=True)
class Ledger:
    """The effects that are not on the disk, in order."""

    entries: list[str] = field(default_factory=list)

    def note(self, kind: str, detail: object = "") -> None:
        """Note an effect."""
        self.entries.append(f"{kind} {detail}".rstrip())


class SearchEngine:
    """A search engine that returns one result."""

    label = "the engine"

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.text = "Green tea is brewed for three minutes."

    async def problem(self) -> str:
        return ""

    async def search(self, query: str, count: int) -> Sequence[Hit]:
        del count
        self._ledger.note("search", query)
        return [Hit(title="A page", url="https://pages.example.org/a", excerpt=self.text)]


class NotedReminders:
    """Implements Reminders: there is one of Ada; every change is noted."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.notes = [ReminderNote(id="rem_1", due=1_900_000_000.0, text="dentist", offset_s=0)]

    async def add(self, note: ReminderNote, scope: TurnScope, *, limit: int) -> bool:
        del scope, limit
        self._ledger.note("reminder", note.text)
        return True

    async def of(self, scope: TurnScope) -> tuple[ReminderNote, ...]:
        del scope
        return tuple(self.notes)

    def workflows(self, scope: TurnScope) -> tuple[str, ...]:
        del scope
        return ()

    async def remove(self, note_id: str, scope: TurnScope) -> bool:
        del scope
        if note_id not in [note.id for note in self.notes]:
            return False
        self._ledger.note("reminder", f"-{note_id}")
        return True

    async def pause(self, note_id: str, scope: TurnScope, *, paused: bool) -> bool:
        del scope
        self._ledger.note("reminder", f"{'pause' if paused else 'resume'} {note_id}")
        return True


class NotedWatches:
    """Implements Watches: every change is noted."""

    intervals = Intervals()

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def add(self, note: WatchNote, scope: TurnScope, *, limit: int) -> bool:
        del scope, limit
        self._ledger.note("watch", f"{note.condition.shown}: {note.text}")
        return True

    async def remove(self, watch_id: str, scope: TurnScope) -> bool:
        del scope
        self._ledger.note("watch", f"-{watch_id}")
        return True


class NotedCommands:
    """Runs nothing: notes the commands."""

    seconds = 60.0

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def run(self, argv: Sequence[str], scope: TurnScope, on_output: OnOutput) -> CommandResult:
        del scope, on_output
        self._ledger.note("command", json.dumps(list(argv)))
        return CommandResult(output=b"fine\n", end=CommandEnd(ending="exit"))

    async def read(self, name: str, scope: TurnScope, most_bytes: int) -> bytes:
        del scope, most_bytes
        if name != "plot.txt":
            raise Refused("it is not in this conversation's folder")
        return b"a plot"


class Attached:
    """Implements ConversationFiles: the conversation has one document."""

    async def newest(self, scope: TurnScope) -> Sequence[StoredFile]:
        del scope
        return [stored_file(b"a menu", kind="file", mime="text/plain", name="menu.txt")]

    async def document(self, scope: TurnScope, file: StoredFile) -> DocumentText:
        del scope, file
        return DocumentText(kind="text", pages=("Soup, bread and tea.",))


class SentFiles:
    """Implements FileStore: notes the content of what is sent."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def put(
        self,
        thread: ThreadKey,
        content: bytes,
        *,
        kind: MediaKind,
        mime: str,
        name: str = "",
        about: str = "",
        scope: str = "",
        off_record: bool = False,
    ) -> StoredFile:
        del thread, off_record
        self._ledger.note("sent", content.decode("utf-8", "replace"))
        return stored_file(content, kind=kind, mime=mime, name=name, about=about, scope=scope)

    async def get(self, thread: ThreadKey, file_id: str) -> bytes:
        raise NotImplementedError

    async def discard(self, thread: ThreadKey, file_ids: Iterable[str]) -> None:
        raise NotImplementedError

    async def discard_thread(self, thread: ThreadKey) -> None:
        raise NotImplementedError
