"""The port of posting channels that post files."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from adapters.channel import Part, PostingChannel
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import MediaKind


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingFile:
    """A file to post. Kind and type were determined from its bytes."""

    content: bytes
    name: str
    """With an ending that fits the type, where the file is shown or played."""
    kind: MediaKind
    mime: str
    caption: str = ""
    """Plain text of at most 900 characters."""


@runtime_checkable
class FilePostingChannel(PostingChannel, Protocol):
    """Implemented where `capabilities.file_bytes` is above 0. `post` takes the part, and `find` finds it, as
    for a text."""

    def render_file(self, file: OutgoingFile) -> Part:
        """The message that shows `file`, with its caption; the same for the same file. Pure."""
        ...
