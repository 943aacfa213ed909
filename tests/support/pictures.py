"""Small real files: a picture of any size, and beginnings of sounds."""

from __future__ import annotations

import struct
import zlib

MP3 = b"ID3\x04\x00\x00\x00\x00\x00\x00" + b"\xff\xfb\x90\x00" + bytes(400)


def png(width: int = 64, height: int = 48, *, shade: int = 120) -> bytes:
    """A grey gradient."""
    row = bytes([0]) + bytes((shade + column * 90 // width) % 256 for column in range(width))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(row * height)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
