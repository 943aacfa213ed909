"""Recognise an audio container from its magic bytes alone.

An allow list: playlists, session descriptions and other text formats that could make a demuxer
open files or sockets are not on it, and therefore never reach one.
"""

from __future__ import annotations

from dataclasses import dataclass

_ID3_HEADER_BYTES = 10
_ID3_FOOTER_FLAG = 0x10


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A recognised container and where its audio begins."""

    name: str
    """`ogg`, `webm`, `mp4`, `mp3`, `wav`, `flac`, `amr` or `aac`."""
    demuxer: str
    """FFmpeg's name for the one demuxer that may read it."""
    offset: int = 0
    """Bytes of ID3 tag before the audio; the tag itself is never parsed."""


_MAGIC = (
    (b"OggS", "ogg", "ogg"),
    (b"\x1a\x45\xdf\xa3", "webm", "matroska"),
    (b"fLaC", "flac", "flac"),
    (b"#!AMR", "amr", "amr"),
)


def recognise(data: bytes) -> Container | None:
    """The container of `data`, or None when it is not on the allow list."""
    offset = _id3_bytes(data)
    head = data[offset : offset + 16]
    for magic, name, demuxer in _MAGIC:
        if head.startswith(magic):
            return Container(name=name, demuxer=demuxer, offset=offset)
    if head[4:8] == b"ftyp":
        return Container(name="mp4", demuxer="mp4", offset=offset)
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return Container(name="wav", demuxer="wav", offset=offset)
    if len(head) >= 2 and head[0] == 0xFF:
        if head[1] & 0xF6 == 0xF0:
            return Container(name="aac", demuxer="aac", offset=offset)
        if head[1] & 0xE0 == 0xE0 and head[1] & 0x06 and head[1] & 0x18 != 0x08:
            return Container(name="mp3", demuxer="mp3", offset=offset)
    return None


def _id3_bytes(data: bytes) -> int:
    """Length of a leading ID3v2 tag: a ten-byte header with a 28-bit size, seven bits a byte."""
    if data[:3] != b"ID3" or len(data) < _ID3_HEADER_BYTES:
        return 0
    size = 0
    for byte in data[6:10]:
        size = size << 7 | byte & 0x7F
    footer = _ID3_HEADER_BYTES if data[5] & _ID3_FOOTER_FLAG else 0
    return _ID3_HEADER_BYTES + size + footer
