"""The group `attachments`: read the documents that people have sent in the conversation, page by page.

A tool reaches only the files of the turn's own conversation. Its texts come from outside and are data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pipeline.domain.attachments import used_note
from pipeline.domain.chat import ToolDefinition
from pipeline.domain.errors import ParlourError
from pipeline.domain.files import StoredFile
from pipeline.domain.readings import DocumentText
from pipeline.history.attached_files import ATTACHED_FILE
from pipeline.runtime.scope import TurnScope
from pipeline.tools.registry import FixedGroup
from pipeline.tools.tool import Refused, Tool, ToolFailed, ToolOutput, tool_schema

ATTACHMENTS = "attachments"
_MOST_LISTED = 20
_NO_FILES = "nothing was attached in this conversation"
_FILE = {
    "type": "string",
    "minLength": 1,
    "maxLength": 200,
    "description": "the file's name, or its number: 1 is the newest",
}
_PAGE = {"type": "integer", "minimum": 1, "maximum": 100_000, "description": "from 1; 1 if left out"}


class ConversationFiles(Protocol):
    """The files that came with the messages of a conversation."""

    async def newest(self, scope: TurnScope) -> Sequence[StoredFile]:
        """The files of the turn's conversation, the newest first. Raises StorageError."""
        ...

    async def document(self, scope: TurnScope, file: StoredFile) -> DocumentText:
        """The text of one of them. Raises FileGone, FileUnreadable, StorageError, each with words for
        people."""
        ...


def attachments_group(files: ConversationFiles) -> FixedGroup:
    """The group over the files of conversations."""

    async def read(arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        return await _read(files, arguments["file"], arguments.get("page", 1), scope)

    definition = ToolDefinition(
        name="read_attachment",
        description="Read one page of a document that was attached in this conversation.",
        parameters=tool_schema({"file": _FILE}, {"page": _PAGE}),
    )
    tool = Tool(definition=definition, group=ATTACHMENTS, run=read, reads_only=True)
    return FixedGroup(
        name=ATTACHMENTS, description="read more pages of documents that the user has sent", fixed=(tool,)
    )


async def _read(files: ConversationFiles, wanted: str, page: int, scope: TurnScope) -> ToolOutput:
    known = await files.newest(scope)
    file = _found(known, wanted.strip())
    if not scope.reading.takes(file.name):
        raise Refused(f"the security policy does not let {used_note(file)} be read")
    scope.reading.note(file.name)
    if file.kind != "file":
        raise ToolFailed(f"{used_note(file)} has no pages: this tool reads documents only")
    try:
        document = await files.document(scope, file)
    except ParlourError as error:
        raise ToolFailed(str(error)) from error
    count = len(document.pages)
    if page > count:
        raise ToolFailed(f"there is no page {page}: the document has {count}")
    text = document.pages[page - 1].strip() or "(This page has no text.)"
    return ToolOutput(text=f"Page {page} of {count}\n\n{text}", foreign=ATTACHED_FILE)


def _found(known: Sequence[StoredFile], wanted: str) -> StoredFile:
    """The newest file of that name, else the one with that number, else the only one whose name has it."""
    by_name = [file for file in known if file.name == wanted]
    if by_name:
        return by_name[0]
    if wanted.isdecimal() and 1 <= int(wanted) <= len(known):
        return known[int(wanted) - 1]
    similar = [file for file in known if wanted.casefold() in file.name.casefold()]
    if len(similar) == 1:
        return similar[0]
    listed = [f"{number}. {used_note(file)}" for number, file in enumerate(known[:_MOST_LISTED], start=1)]
    raise ToolFailed("\n".join(("there is no such file; there are:", *listed)) if listed else _NO_FILES)
