"""Recognise what a file is from its first bytes, never from its name."""

from __future__ import annotations

from typing import Literal

PictureFormat = Literal["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF"]
"""As Pillow names them."""

_PICTURES: tuple[tuple[bytes, PictureFormat], ...] = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"BM", "BMP"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
)
_AVIF = (b"avif", b"avis")
_HEIC = (b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1")
_PDF, _PDF_END = b"%PDF-", b"%%EOF"
_PDF_WITHIN = 1_024
"""Bytes that may come before a PDF's header, as its readers commonly accept."""
_BMP_HEADER_SIZES = (12, 40, 52, 56, 64, 108, 124)

ZIP = (b"PK\x03\x04", b"PK\x05\x06")
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The container of old Office files, and of encrypted new ones."""
ARCHIVES = (b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd")


def picture_format(content: bytes) -> PictureFormat | None:
    """The format of a picture; None for anything else."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "WEBP"
    brand = content[8:12] if content[4:8] == b"ftyp" else b""
    if brand in _AVIF or (brand in _HEIC and b"avif" in content[16:64]):
        return "AVIF"
    found = next((form for magic, form in _PICTURES if content.startswith(magic)), None)
    # Two letters are a weak sign: a text may begin with them.
    if found == "BMP" and int.from_bytes(content[14:18], "little") not in _BMP_HEADER_SIZES:
        return None
    return found


def is_heic(content: bytes) -> bool:
    """Whether it is a picture as Apple's cameras save it."""
    return content[4:8] == b"ftyp" and content[8:12] in _HEIC and picture_format(content) is None


def is_pdf(content: bytes) -> bool:
    """Whether it begins as a PDF, or has its beginning near the start and its end."""
    return content.startswith(_PDF) or (_PDF in content[:_PDF_WITHIN] and _PDF_END in content)
