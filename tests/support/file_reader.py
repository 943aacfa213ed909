"""A fake of the process that reads pictures and documents, without any format: the content decides by its
first bytes."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.domain.readings import DocumentText, FileUnreadable, Picture

PICTURE = b"\x89PNG\r\n\x1a\n"
"""How the content of a picture begins."""
SCALED = b"\xff\xd8\xffscaled:"
"""How the content of a scaled picture begins; the rest is that of the file."""


class FakeFileReader:
    """A `FileReader`: a picture is `PICTURE` and any bytes, a document its pages between form feeds."""

    def __init__(self, *, broken: str = "", on_read: Callable[[], None] = lambda: None) -> None:
        """`broken` are the words with which it refuses every file; `on_read` is called before each."""
        self.broken = broken
        self.on_read = on_read
        self.asked: list[tuple[int, int]] = []
        """The limits of each picture: side and bytes."""

    async def picture(self, content: bytes, *, max_side: int, max_bytes: int) -> Picture:
        self._refuse()
        self.asked.append((max_side, max_bytes))
        if not content.startswith(PICTURE):
            raise FileUnreadable("I cannot read this kind of picture.", reason="unsupported")
        return Picture(
            content=SCALED + content.removeprefix(PICTURE),
            mime="image/jpeg",
            width=640,
            height=360,
            original_width=1280,
            original_height=720,
        )

    async def document(self, content: bytes, *, name: str, mime: str) -> DocumentText:
        self._refuse()
        if b"\0" in content:
            raise FileUnreadable("I cannot read this kind of file.", reason="unsupported")
        kind = "pdf" if mime == "application/pdf" or name.endswith(".pdf") else "text"
        pages = tuple(content.decode("utf-8").split("\f"))
        return DocumentText(kind="pdf" if kind == "pdf" else "text", pages=pages)

    def _refuse(self) -> None:
        self.on_read()
        if self.broken:
            raise FileUnreadable(self.broken, reason="unavailable")
