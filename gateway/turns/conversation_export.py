"""Run the command /export: a chat's conversations as Markdown or JSON Lines."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, Literal

from adapters.channel import Timeline
from gateway.turns.journal import StoreJournal
from pipeline.domain.attachments import named_file
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.files import FileStore
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import SessionCommand
from pipeline.domain.timeline import TimelineEntry

_log = logging.getLogger(__name__)

Format = Literal["md", "jsonl"]
_FORMATS: Final[dict[str, Format]] = {
    "": "md",
    "md": "md",
    "markdown": "md",
    "json": "jsonl",
    "jsonl": "jsonl",
}
_IN_A_ROOM = "Others read along here. Send `/export` to me in private."
_UNKNOWN = "Send `/export` for Markdown, or `/export jsonl` for JSON Lines."
_NOTHING = "There is nothing on record in this chat."
_PAGE_CHANNEL = "web"
_MOST_CHARS = 30_000
_MOST_CHARS_OF_FILE = 2_000_000
_PAGE = 500
"""Entries read at once."""
_HERE = "Here are the conversations of this chat."
_NOT_STORED = "The file could not be written. Please try again later."
_MIME: Final[dict[Format, str]] = {"md": "text/markdown", "jsonl": "application/jsonl"}
_LEFT_OUT = "The beginning is left out: it is too long.\n\n"
_TITLE = "# Conversation with {bot}, {day}\n\n"


class ConversationExport:
    """Runs the command in all threads."""

    def __init__(
        self,
        timeline: Timeline,
        files: FileStore,
        clock: Clock,
        bot: str,
        *,
        takes_files: Callable[[ThreadKey], bool],
    ) -> None:
        """`bot` is the bot's name, `takes_files` whether the channel of a thread posts files."""
        self._timeline = timeline
        self._files = files
        self._takes_files = takes_files
        self._clock = clock
        self._bot = bot

    async def run(self, command: SessionCommand, journal: StoreJournal) -> None:
        """Send the conversations of the chat, as far as they are on record. Raises StorageError."""
        form = _FORMATS.get(command.argument.casefold())
        if not command.private:
            await journal.commit_notice(_IN_A_ROOM)
        elif form is None:
            await journal.commit_notice(_UNKNOWN)
        else:
            await self._deliver(await self._content(command.thread, form), form, command, journal)

    async def _deliver(
        self, content: str, form: Format, command: SessionCommand, journal: StoreJournal
    ) -> None:
        """Send the content as a file, on the page as the line that it offers as a download, and on a channel
        without files as messages. It repeats the log, so it is forgotten once sent."""
        if not content:
            await journal.commit_notice(_NOTHING)
        elif command.thread.channel == _PAGE_CHANNEL:
            await journal.commit_notice(content, code=f"export-{form}", forgotten=True)
        elif self._takes_files(command.thread):
            await self._post_file(content, form, command, journal)
        else:
            fenced = content if form == "md" else f"```json\n{content}```"
            await journal.commit_notice(fenced, forgotten=True)

    async def _post_file(
        self, content: str, form: Format, command: SessionCommand, journal: StoreJournal
    ) -> None:
        try:
            file = await self._files.put(
                command.thread,
                content.encode("utf-8", "replace"),
                kind="file",
                mime=_MIME[form],
                name=f"conversation.{form}",
                scope=command.message_id,
                off_record=True,
            )
        except StorageError as error:
            _log.warning("an export could not be stored", extra={"reason": str(error)})
            await journal.commit_notice(_NOT_STORED)
            return
        # The reply is treated as one off the record: the file is removed once it is posted.
        await journal.commit_notice(_HERE, files=(file,), forgotten=True)

    async def _content(self, thread: ThreadKey, form: Format) -> str:
        """The newest entries that are not too long, oldest first; empty for none."""
        is_file = thread.channel == _PAGE_CHANNEL or self._takes_files(thread)
        most = _MOST_CHARS_OF_FILE if is_file else _MOST_CHARS
        blocks: list[str] = []
        removed: set[str] = set()
        roots: dict[str, str] = {}
        size, before, cut = 0, 2**53, False
        while before and not cut:
            page = await self._timeline.earlier(thread, before=before, limit=_PAGE)
            before = page.next
            turns = {entry.message_id: entry.replaces or entry.turn for entry in page.entries}
            roots |= {message: root for message, root in turns.items() if root}
            removed |= {entry.removed for entry in page.entries if entry.removed}
            for entry in reversed(page.entries):
                is_out = roots.get(entry.message_id, entry.message_id) in removed
                block = self._block(entry, form, taken_out=is_out)
                size += len(block)
                if size > most:
                    cut = True
                    break
                blocks.append(block)
        return self._joined(list(reversed(blocks)), form, cut=cut)

    def _joined(self, blocks: Sequence[str], form: Format, *, cut: bool) -> str:
        content = "".join(blocks)
        if form == "jsonl" or not content:
            return content
        title = _TITLE.format(bot=self._bot, day=_time(self._clock.now())[:10])
        return title + (_LEFT_OUT if cut else "") + content

    def _block(self, entry: TimelineEntry, form: Format, *, taken_out: bool) -> str:
        """One entry of the file; empty for a title and for a line of the gateway's own."""
        if entry.role in ("title", "notice"):
            return ""
        if form == "jsonl":
            return _json_line(entry, taken_out=taken_out)
        if entry.role == "session":
            return f"---\n\n{entry.text} ({_time(entry.at)})\n\n"
        who = "You" if entry.role == "user" else self._bot
        marks = ", taken out" if taken_out else ""
        files = f"Files: {', '.join(map(named_file, entry.files))}" if entry.files else ""
        text = "\n\n".join(part for part in (entry.text, files) if part)
        return f"**{who}** ({_time(entry.at)}{marks}):\n\n{text}\n\n"


def _json_line(entry: TimelineEntry, *, taken_out: bool) -> str:
    fields: Iterable[tuple[str, str | bool | list[str]]] = (
        ("at", datetime.fromtimestamp(entry.at, UTC).isoformat()),
        ("role", entry.role),
        ("message_id", entry.message_id),
        ("text", entry.text),
        ("files", [file.name or file.kind for file in entry.files]),
        ("replaces", entry.replaces),
        ("taken_out", taken_out),
    )
    return json.dumps({name: value for name, value in fields if value}, ensure_ascii=False) + "\n"


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
