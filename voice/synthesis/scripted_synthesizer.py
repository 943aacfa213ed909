"""The shipped fake of `SpeechSynthesizer`: produces silence of a plausible length and records its calls.

For tests, demonstrations and offline development. Its output is a real OGG file with Opus, assembled
from bytes, so that no native code is loaded.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from voice.errors import SpeakerUnavailable
from voice.synthesis.synthesizer import SpokenAudio

_SECONDS_PER_WORD = 0.4
_PACKETS_PER_S = 50
_SAMPLES_PER_PACKET = 960
_SILENCE = b"\xf8\xff\xfe"
"""20 ms of silence, 48 kHz mono: RFC 6716, a packet without any coded energy."""
_SERIAL = 1
_PAGE = struct.Struct("<4sBBqIIIB")
_FIRST, _LAST = 2, 4
_PACKETS_PER_PAGE = _PACKETS_PER_S
_POLYNOMIAL = 0x04C11DB7


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenCall:
    """One recorded call."""

    text: str
    language: str
    voice: str = ""
    speed: float = 1.0


class ScriptedSpeaker:
    """Implements `SpeechSynthesizer`. `failures` are raised first, one per call; None lets one succeed."""

    def __init__(
        self, *, languages: Iterable[str] = ("en",), failures: Iterable[SpeakerUnavailable | None] = ()
    ) -> None:
        self._languages = frozenset(languages)
        self._failures = deque(failures)
        self._status = "not started"
        self.calls: list[SpokenCall] = []

    def speaks(self, language: str) -> bool:
        return language.partition("-")[0] in self._languages

    async def speak(
        self, text: str, *, language: str = "en", voice: str = "", speed: float = 1.0
    ) -> SpokenAudio:
        self.calls.append(SpokenCall(text=text, language=language, voice=voice, speed=speed))
        await self.warm_up()
        failure = self._failures.popleft() if self._failures else None
        if failure is not None:
            raise failure
        if not self.speaks(language):
            raise SpeakerUnavailable(f"The scripted speaker has no voice for {language!r}.")
        if not text.strip():
            raise SpeakerUnavailable("There is nothing to say.")
        seconds = round(_SECONDS_PER_WORD * len(text.split()) / speed, 1)
        points = min(256, int(seconds * 10))
        waveform = bytes(40 + 37 * place % 200 for place in range(points))
        return SpokenAudio(data=silence(seconds), seconds=seconds, waveform=waveform)

    async def warm_up(self) -> None:
        if self._status == "closed":
            raise SpeakerUnavailable("The scripted speaker is closed.")
        self._status = "ready"

    async def close(self) -> None:
        self._status = "closed"

    def status(self) -> str:
        return self._status


def silence(seconds: float) -> bytes:
    """An OGG file with Opus, 48 kHz mono, of `seconds` rounded to 20 ms."""
    head = b"OpusHead" + struct.pack("<BBHIhB", 1, 1, 0, 48_000, 0, 0)
    tags = b"OpusTags" + struct.pack("<I7sI", 7, b"Parlour", 0)
    pages = [_page([head], 0, 0, _FIRST), _page([tags], 0, 1, 0)]
    left, position = max(1, round(seconds * _PACKETS_PER_S)), 0
    while left:
        packets = min(left, _PACKETS_PER_PAGE)
        left -= packets
        position += packets * _SAMPLES_PER_PACKET
        pages.append(_page([_SILENCE] * packets, position, len(pages), 0 if left else _LAST))
    return b"".join(pages)


def _page(packets: list[bytes], position: int, number: int, kind: int) -> bytes:
    """One page, RFC 3533: its packets are shorter than 255 bytes."""
    lacing = bytes(len(packet) for packet in packets)
    header = _PAGE.pack(b"OggS", 0, kind, position, _SERIAL, number, 0, len(packets))
    page = header + lacing + b"".join(packets)
    return page[:22] + struct.pack("<I", _checksum(page)) + page[26:]


def _checksum(page: bytes) -> int:
    value = 0
    for byte in page:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ _POLYNOMIAL if value & 0x80000000 else value << 1) & 0xFFFFFFFF
    return value
