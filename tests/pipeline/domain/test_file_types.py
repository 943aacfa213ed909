"""What a file is, by its bytes, and the name under which it is sent."""

from __future__ import annotations

from pipeline.domain.file_types import FileType, file_type, is_text, safe_name
from tests.support.pictures import MP3, png
from tests.support.tables import each

JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(10) + b"\xff\xc0\x00\x11\x08\x01\xe0\x02\x80\x03" + bytes(20)
WEBP = b"RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00" + bytes(4) + b"\x7f\x02\x00\xdf\x01\x00"
LOSSLESS = b"RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00\x2f" + (639 | 479 << 14).to_bytes(4, "little")


@each(
    "content, kind, mime, about",
    [
        (png(640, 480), "image", "image/png", "640 by 480"),
        (JPEG, "image", "image/jpeg", "640 by 480"),
        (b"GIF89a\x80\x02\xe0\x01" + bytes(20), "image", "image/gif", "640 by 480"),
        (WEBP, "image", "image/webp", "640 by 480"),
        (LOSSLESS, "image", "image/webp", "640 by 480"),
        (b"\xff\xd8\xff", "image", "image/jpeg", ""),
        (MP3, "audio", "audio/mpeg", ""),
        (b"OggS" + bytes(30), "audio", "audio/ogg", ""),
        (b"fLaC" + bytes(30), "audio", "audio/flac", ""),
        (b"RIFF\x00\x00\x00\x00WAVE", "audio", "audio/wav", ""),
        (b"\x00\x00\x00\x20ftypM4A " + bytes(9), "audio", "audio/mp4", ""),
        (b"\x00\x00\x00\x20ftypisom" + bytes(9), "video", "video/mp4", ""),
        (b"\x1a\x45\xdf\xa3" + bytes(9), "video", "video/webm", ""),
        (b"%PDF-1.7\n", "file", "application/pdf", ""),
        (b"plain words\n", "file", "text/plain", ""),
        (b"\x00\x01\x02", "file", "application/octet-stream", ""),
        (b"\xff\xfe" + "UTF-16".encode("utf-16-le"), "file", "application/octet-stream", ""),
    ],
)
def test_the_bytes_decide(content: bytes, kind: str, mime: str, about: str) -> None:
    found = file_type(content)
    assert (found.kind, found.mime, found.about) == (kind, mime, about)


@each("declared", ["image/png", "audio/mpeg", "video/mp4", "image/svg+xml"])
@each("content", [b"<svg onload='alert(1)'>", b"<html>", b"\x00\x01"])
def test_what_only_calls_itself_a_picture_is_a_file(content: bytes, declared: str) -> None:
    assert file_type(content, declared).kind == "file"
    assert not file_type(content, declared).mime.startswith(("image/", "audio/", "video/"))


def test_the_declared_type_of_a_document_counts() -> None:
    assert file_type(b"a,b\n1,2\n", "Text/CSV; charset=utf-8").mime == "text/csv"
    assert file_type(b"a,b\n", "no type\r\nX-Header: 1").mime == "text/plain"


def test_a_text_may_be_cut_inside_a_character() -> None:
    assert is_text(("é" * 5_000).encode())
    assert is_text(b"x" + ("é" * 5_000).encode())
    assert not is_text(b"\xe9" * 100)


PNG = FileType(kind="image", mime="image/png")
TEXT = FileType(kind="file", mime="text/plain")
OTHER = FileType(kind="file", mime="application/octet-stream")


@each(
    "name, found, safe",
    [
        ("chart.png", PNG, "chart.png"),
        ("chart.PNG", PNG, "chart.PNG"),
        ("chart", PNG, "chart.png"),
        ("chart.exe", PNG, "chart.exe.png"),
        ("", PNG, "image.png"),
        ("", OTHER, "file"),
        ("../../etc/passwd", OTHER, "passwd"),
        ("C:\\temp\\list.txt", TEXT, "list.txt"),
        ("a\r\nb: c.txt", TEXT, "a_b_ c.txt"),
        ("photo.png", TEXT, "photo.png.txt"),
        ("photo.jpg", OTHER, "photo.jpg.bin"),
        ("\u202egnp.exe", OTHER, "gnp.exe"),
        ("..", OTHER, "file"),
        ("x" * 300 + ".txt", TEXT, "x" * 96 + ".txt"),
    ],
)
def test_a_name_is_safe_to_show_and_fits_the_content(name: str, found: FileType, safe: str) -> None:
    assert safe_name(name, found) == safe
    assert safe_name(safe, found) == safe
