"""Messages with files for a gateway with the posting channel in memory."""

from __future__ import annotations

from pipeline.domain.messages import Author, InboundMessage, MediaKind, MediaRef
from tests.support.posting_channel import MemoryPosts


def ref(handle: str, kind: MediaKind, name: str = "", mime: str = "", size: int | None = None) -> MediaRef:
    """A file that `MemoryPosts.media` has under `handle`."""
    return MediaRef(channel="memory", handle=handle, kind=kind, name=name, mime=mime, size=size)


def message(posts: MemoryPosts, number: int, text: str, *refs: MediaRef) -> InboundMessage:
    """The message `m_<number>` of Ann with these files."""
    return InboundMessage(
        message_id=f"m_{number}",
        native_id=str(number),
        thread=posts.thread(),
        author=Author(id="ann"),
        received_at=0.0,
        text=text,
        attachments=refs,
    )
