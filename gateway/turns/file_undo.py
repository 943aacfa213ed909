"""Run /undo files: take back the last change that a tool made to a file in this conversation."""

from __future__ import annotations

from typing import Final

from gateway.chronicle.chronicle import Chronicle
from gateway.storage.file_changes import FileChange
from pipeline.domain.conversation import Source
from pipeline.domain.messages import SessionCommand
from pipeline.tools.failures import ToolFailed

FILES: Final = "files"
_ONLY_FILES = "Only `files` may follow `/undo`."
_NOTHING = "There is no change of a file in this conversation that I could take back."
_RESTORED = "I took back the last change of {files}."
_COVERED = "I leave {file} as it is: after that change, {who} changed it once more."
_ANOTHER = "another conversation or agent"
_OUTSIDE = "something other than my tools"
_FAILED = "The change was not taken back: {why}."
_OWN_PARTS = 3
"""Of `people/<owner>/files/…`."""


class FileUndo:
    """Runs the command in all threads. Keeps no state between two commands."""

    def __init__(self, chronicle: Chronicle) -> None:
        self._chronicle = chronicle

    async def run(self, command: SessionCommand) -> str:
        """The line about what was taken back. Repeating the command after a crash takes back the same.
        Raises StorageError."""
        if command.argument.casefold() != FILES:
            return _ONLY_FILES
        author = None if command.private else command.author.id
        try:
            undone = await self._chronicle.undo_last(
                command.thread.encode(), by=command.message_id, author=author
            )
        except ToolFailed as failure:
            return _FAILED.format(why=str(failure).rstrip("."))
        if undone.outcome == "covered":
            who = _ANOTHER if undone.later[-1].tool else _OUTSIDE
            return _COVERED.format(file=_shown(undone.changes[0]), who=who)
        if undone.outcome != "restored":
            return _NOTHING
        return _RESTORED.format(files=", ".join(map(_shown, undone.changes)))

    async def changed_by(self, turn: Source, command: SessionCommand) -> str:
        """The file of the thread's last change in words, if the turn made it; otherwise empty. Raises
        StorageError."""
        last = await self._chronicle.last_of(command.thread.encode())
        if last is None or last.message_id not in (turn.message_id, turn.root):
            return ""
        return _shown(last)


def _shown(change: FileChange) -> str:
    """The file as tools name it."""
    parts = change.path.split("/")
    if len(parts) > _OWN_PARTS and parts[0] == "people" and parts[2] == "files":
        return f"`own/{'/'.join(parts[3:])}`"
    if len(parts) > _OWN_PARTS and parts[0] == "people" and parts[2] == "notes":
        return "a note"
    return f"`{parts[-1]}`"
