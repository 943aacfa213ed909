"""The type of a file, from its bytes: a name or a declared type proves nothing. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import MediaKind
from pipeline.domain.visible import visible_text

OCTETS: Final = "application/octet-stream"
_NAME_CHARS = 100
_TEXT_LOOKED_AT = 8_192
_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,60}/[a-z0-9][a-z0-9!#$&^_.+-]{0,80}")
_MEDIA = ("image/", "audio/", "video/")
_UNNAMED = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]+')
_ENDINGS: Mapping[str, tuple[str, ...]] = {
    "image/png": (".png",),
    "image/jpeg": (".jpg", ".jpeg"),
    "image/gif": (".gif",),
    "image/webp": (".webp",),
    "audio/mpeg": (".mp3",),
    "audio/mp4": (".m4a",),
    "audio/ogg": (".ogg", ".oga", ".opus"),
    "audio/wav": (".wav",),
    "audio/flac": (".flac",),
    "video/mp4": (".mp4", ".m4v"),
    "video/webm": (".webm",),
}
"""The endings of names for the types that are shown or played; the first is added to a name without one."""
_ALL_ENDINGS = frozenset(ending for endings in _ENDINGS.values() for ending in endings)
_FTYP_AUDIO = (b"M4A ", b"M4B ")
_JPEG_SIZES = frozenset((*range(0xC0, 0xC4), *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileType:
    """What a file is."""

    kind: MediaKind
    """`image`, `audio` and `video` only where a browser can show or play it; else `file`."""
    mime: str
    width: int = 0
    """Pixels of a picture; 0 if unknown, as is `height`."""
    height: int = 0

    @property
    def about(self) -> str:
        """`640 by 480` for a picture; empty if the size is unknown."""
        return f"{self.width} by {self.height}" if self.width and self.height else ""


def file_type(content: bytes, declared: str = "") -> FileType:
    """The type of `content`. `declared` counts only for a document, and never for one that calls itself a
    picture, a sound or a film."""
    found = _picture(content) or _sound_or_film(content)
    if found is not None:
        return found
    said = declared.lower().partition(";")[0].strip()
    if content.startswith(b"%PDF-"):
        return FileType(kind="file", mime="application/pdf")
    if _MIME.fullmatch(said) and not said.startswith(_MEDIA):
        return FileType(kind="file", mime=said)
    return FileType(kind="file", mime="text/plain" if is_text(content) else OCTETS)


def is_text(content: bytes) -> bool:
    """Whether the content seems to be text in UTF-8."""
    head = content[:_TEXT_LOOKED_AT]
    if b"\0" in head:
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        # A character may be cut at the end of what is looked at.
        return len(content) > len(head) and error.start >= len(head) - 3
    return True


def safe_name(name: str, found: FileType) -> str:
    """`name` for display and for an upload: no path, no invisible characters, at most 100 characters, with an
    ending that fits the content where platforms go by the ending."""
    plain = _UNNAMED.sub("_", visible_text(PurePosixPath(name.replace("\\", "/")).name)).strip(" .")
    stem, dot, end = plain.rpartition(".")
    ending = f".{end.lower()}" if dot and stem else ""
    fitting = _ENDINGS.get(found.mime, ())
    if fitting and ending not in fitting:
        return plain[: _NAME_CHARS - 6] + fitting[0] if plain else f"{found.kind}{fitting[0]}"
    if not fitting and ending in _ALL_ENDINGS:
        return plain[: _NAME_CHARS - 4] + (".txt" if found.mime.startswith("text/") else ".bin")
    if len(plain) > _NAME_CHARS:
        plain = (
            plain[: _NAME_CHARS - len(ending)] + ending
            if len(ending) < _NAME_CHARS // 4
            else plain[:_NAME_CHARS]
        )
    return plain or "file"


def _picture(content: bytes) -> FileType | None:
    if content.startswith(b"\x89PNG\r\n\x1a\n") and content[12:16] == b"IHDR":
        return _image("image/png", _number(content[16:20]), _number(content[20:24]))
    if content.startswith(b"\xff\xd8\xff"):
        return _image("image/jpeg", *_jpeg_size(content))
    if content.startswith((b"GIF87a", b"GIF89a")):
        return _image("image/gif", _little(content[6:8]), _little(content[8:10]))
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return _image("image/webp", *_webp_size(content))
    return None


def _sound_or_film(content: bytes) -> FileType | None:
    head = content[:16]
    if head.startswith(b"ID3") or (len(head) > 2 and head[0] == 0xFF and head[1] & 0xE6 == 0xE2):
        return FileType(kind="audio", mime="audio/mpeg")
    if head.startswith(b"OggS"):
        return FileType(kind="audio", mime="audio/ogg")
    if head.startswith(b"fLaC"):
        return FileType(kind="audio", mime="audio/flac")
    if head.startswith(b"RIFF") and head[8:12] == b"WAVE":
        return FileType(kind="audio", mime="audio/wav")
    if head[4:8] == b"ftyp":
        if head[8:12] in _FTYP_AUDIO:
            return FileType(kind="audio", mime="audio/mp4")
        if head[8:11] in (b"iso", b"mp4", b"avc", b"M4V"):
            return FileType(kind="video", mime="video/mp4")
    if head.startswith(b"\x1a\x45\xdf\xa3"):
        return FileType(kind="video", mime="video/webm")
    return None


def _image(mime: str, width: int, height: int) -> FileType:
    return FileType(kind="image", mime=mime, width=width, height=height)


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _jpeg_size(content: bytes) -> tuple[int, int]:
    """Width and height from the first frame header; zeros if there is none."""
    at = 2
    while at + 9 <= len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        if marker in _JPEG_SIZES:
            return _number(content[at + 7 : at + 9]), _number(content[at + 5 : at + 7])
        at += 2 + max(2, _number(content[at + 2 : at + 4]))
    return 0, 0


def _webp_size(content: bytes) -> tuple[int, int]:
    form = content[12:16]
    if form == b"VP8X":
        return 1 + _little(content[24:27]), 1 + _little(content[27:30])
    if form == b"VP8 ":
        return _little(content[26:28]) & 0x3FFF, _little(content[28:30]) & 0x3FFF
    if form == b"VP8L":
        packed = _little(content[21:25])
        return 1 + (packed & 0x3FFF), 1 + (packed >> 14 & 0x3FFF)
    return 0, 0
