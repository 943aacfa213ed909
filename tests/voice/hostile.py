"""Files that mean harm, or had bad luck: the same ones in every run."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

from tests.voice.clips import NOTES, amr_bomb, wav

_SEED = 20_240_607
_MUTANTS = 10
"""Of each kind, for each container."""
_LONG = 2_000_000
"""Bytes of a file of many notes: of several minutes."""

TEXTS = {
    "sdp": b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\nc=IN IP4 127.0.0.1\r\nm=audio 5004 RTP/AVP 0\r\n",
    "m3u8": b"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nfile:///etc/passwd\n",
    "m3u8-http": b"#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:9/x.ts\n#EXT-X-ENDLIST\n",
    "ffconcat": b"ffconcat version 1.0\nfile '/etc/passwd'\n",
    "mpd": b'<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><BaseURL>file:///</BaseURL></MPD>',
    "html": b"<!doctype html><html><audio src='http://127.0.0.1/'></html>",
    "json": b'{"ok": false, "error": "file not found"}',
    "svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    "zip": b"PK\x03\x04\x14\x00\x00\x00\x08\x00" + bytes(200),
    "gzip": b"\x1f\x8b\x08\x00" + bytes(200),
    "exe": b"MZ\x90\x00" + bytes(400),
    "elf": b"\x7fELF\x02\x01\x01" + bytes(400),
    "pdf": b"%PDF-1.7\n" + bytes(200),
    "gif": b"GIF89a" + bytes(200),
    "png": b"\x89PNG\r\n\x1a\n" + bytes(200),
    "avi": b"RIFF\xff\xff\xff\xffAVI LIST" + bytes(200),
    "midi": b"MThd\x00\x00\x00\x06\x00\x01\x00\x01\x00\x60" + bytes(60),
    "caf": b"caff\x00\x01\x00\x00desc" + bytes(100),
    "nul": bytes(4_096),
    "ones": b"\xff" * 4_096,
    "empty": b"",
    "one-byte": b"O",
    "text": "Ich bin eine Sprachnachricht.".encode("utf-16"),
}


def corpus() -> Iterator[tuple[str, bytes]]:
    """Each file with its name."""
    dice = random.Random(_SEED)
    yield from TEXTS.items()
    yield from _lies()
    yield from _bombs()
    for suffix, data in NOTES.items():
        other = dice.choice(tuple(NOTES.values()))
        yield f"{suffix}-twice", data + data
        yield f"{suffix}-and-another", data + other
        yield f"{suffix}-garbage-tail", data + dice.randbytes(5_000)
        yield f"{suffix}-playlist-tail", data + TEXTS["ffconcat"]
        yield f"{suffix}-head-of-another", other[:40] + data[40:]
        yield f"{suffix}-garbage-body", data[:64] + dice.randbytes(20_000)
        for number in range(_MUTANTS):
            yield f"{suffix}-cut-{number}", data[: dice.randrange(4, len(data))]
            yield f"{suffix}-flipped-{number}", _flipped(data, dice)
    for magic in (b"OggS", b"\x1a\x45\xdf\xa3", b"fLaC", b"#!AMR\n", b"#!AMR-WB\n", b"\xff\xf1", b"\xff\xfb"):
        for number in range(2):
            yield f"garbage-behind-{magic.hex()}-{number}", magic + dice.randbytes(dice.randrange(1, 30_000))


def _lies() -> Iterator[tuple[str, bytes]]:
    """Headers that do not tell the truth."""
    sound = bytes(7_000)
    for rate in (0, 1, 7_999, 96_001, 0x7FFFFFFF):
        yield f"wav-of-{rate}-hertz", _patched(wav(sound), 24, struct.pack("<I", rate))
    for channels in (9, 255, 65_535):
        yield f"wav-of-{channels}-channels", _patched(wav(sound), 22, struct.pack("<H", channels))
    yield "wav-of-no-channels", _patched(wav(sound), 22, bytes(2))
    yield "wav-of-no-alignment", _patched(wav(sound), 32, bytes(2))
    yield "wav-of-64-bits", _patched(wav(sound), 34, struct.pack("<H", 64))
    for codec in (0x0002, 0x0011, 0x0055, 0x0160, 0x1602, 0xFFFE, 0xFFFF):
        yield f"wav-of-codec-{codec:04x}", _patched(wav(sound), 20, struct.pack("<H", codec))
    yield "wav-without-samples", wav(b"")
    yield "wav-of-no-size", _patched(wav(sound), 40, bytes(4))
    yield "wav-of-endless-size", _patched(wav(sound), 40, b"\xff\xff\xff\xff")
    yield "riff-of-no-size", _patched(wav(sound), 4, bytes(4))
    for size in (b"\x00\x00\x00\x00", b"\x00\x00\x7f\x7f", b"\x7f\x7f\x7f\x7f", b"\xff\xff\xff\xff"):
        for suffix in ("mp3", "aac", "flac"):
            yield f"{suffix}-behind-a-tag-of-{size.hex()}", b"ID3\x04\x00\x00" + size + NOTES[suffix]
    yield "tags-all-the-way-down", (b"ID3\x04\x00\x00\x00\x00\x00\x00") * 500 + NOTES["mp3"]
    flac = NOTES["flac"]
    yield "flac-of-one-hertz", _patched(flac, 18, b"\x00\x00\x10")
    yield "flac-of-huge-blocks", _patched(flac, 8, b"\xff\xff\xff\xff")
    mp4 = NOTES["m4a"]
    for box in (b"mvhd", b"stsz", b"stts", b"stco", b"esds", b"mdat", b"moov"):
        at = mp4.index(box)
        yield f"mp4-{box.decode()}-of-huge-size", _patched(mp4, at - 4, b"\xff\xff\xff\xf0")
        yield f"mp4-{box.decode()}-of-no-size", _patched(mp4, at - 4, bytes(4))
        yield f"mp4-{box.decode()}-of-many-entries", _patched(mp4, at + 8, b"\x7f\xff\xff\xff")


def _bombs() -> Iterator[tuple[str, bytes]]:
    """Hours in a few bytes, or the claim of hours."""
    yield "bomb-amr-8h", amr_bomb(8)
    yield "bomb-aac-long", NOTES["aac"] * (_LONG // len(NOTES["aac"]))
    yield "bomb-mp3-long", NOTES["mp3"] * (_LONG // len(NOTES["mp3"]))
    yield "bomb-ogg-chained", NOTES["oga"] * 100
    yield "bomb-ogg-declared-8h", ogg_declaring(8)
    yield "bomb-flac-declared-8h", flac_declaring(8)
    mp4 = NOTES["m4a"]
    for box in (b"mvhd", b"tkhd", b"mdhd"):
        at = mp4.index(box) + (24 if box == b"tkhd" else 20)
        mp4 = _patched(mp4, at, struct.pack(">I", 2**31))
    yield "bomb-mp4-declared", mp4


def flac_declaring(hours: float) -> bytes:
    """A FLAC file whose header says that it holds so many hours."""
    header = bytearray(NOTES["flac"])
    rate = int.from_bytes(header[18:21], "big") >> 4
    samples = int(hours * 3600 * rate)
    header[21] = header[21] & 0xF0 | samples >> 32
    struct.pack_into(">I", header, 22, samples & 0xFFFFFFFF)
    return bytes(header)


def ogg_declaring(hours: float) -> bytes:
    """An Ogg file whose last page ends so many hours after the first, with a sound checksum."""
    data = bytearray(NOTES["oga"])
    page = data.rindex(b"OggS")
    struct.pack_into("<q", data, page + 6, int(hours * 3600 * 48_000))
    struct.pack_into("<I", data, page + 22, 0)
    struct.pack_into("<I", data, page + 22, _ogg_checksum(bytes(data[page:])))
    return bytes(data)


def _ogg_checksum(page: bytes) -> int:
    checksum = 0
    for byte in page:
        checksum ^= byte << 24
        for _ in range(8):
            checksum = (checksum << 1 ^ (0x04C11DB7 if checksum & 0x80000000 else 0)) & 0xFFFFFFFF
    return checksum


def _flipped(data: bytes, dice: random.Random) -> bytes:
    broken = bytearray(data)
    reach = dice.choice((200, 2_000, len(data)))  # half of the harm is in the headers
    for _ in range(dice.randrange(1, 10)):
        broken[dice.randrange(min(reach, len(data)))] ^= 1 << dice.randrange(8)
    return bytes(broken)


def _patched(data: bytes, position: int, patch: bytes) -> bytes:
    return data[:position] + patch + data[position + len(patch) :]
