"""Read single members of a ZIP file within bounds. Runs in the reading process only."""

from __future__ import annotations

import io
import zipfile
import zlib

from gateway.reading.failures import ReadingFailed

MAX_MEMBER_BYTES = 48 * 1024**2
MAX_TOTAL_BYTES = 96 * 1024**2
_MAX_RATIO = 300
"""XML packs to a fiftieth at most; a bomb packs to a thousandth."""
_RATIO_FROM_BYTES = 1024**2
_MAX_MEMBERS = 10_000
_CHUNK = 65_536
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class ZipContents:
    """The members of a ZIP file, by name. Raises ReadingFailed."""

    def __init__(self, content: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError, LookupError) as error:
            raise ReadingFailed("document_damaged") from error
        if len(self._zip.infolist()) > _MAX_MEMBERS:
            raise ReadingFailed("unpacks_too_large")
        self.names = frozenset(self._zip.namelist())
        self._left = MAX_TOTAL_BYTES

    def read(self, name: str) -> bytes:
        """The bytes of a member; empty without one of that name."""
        if name not in self.names:
            return b""
        member = self._zip.getinfo(name)
        if member.flag_bits & _ENCRYPTED:
            raise ReadingFailed("encrypted")
        if member.compress_type not in _METHODS:
            raise ReadingFailed("document_damaged")
        # What the file says about sizes is not trusted: reading stops at the limits.
        most = min(MAX_MEMBER_BYTES, self._left, max(_RATIO_FROM_BYTES, member.compress_size * _MAX_RATIO))
        unpacked = bytearray()
        try:
            with self._zip.open(member) as stream:
                while chunk := stream.read(_CHUNK):
                    unpacked += chunk
                    if len(unpacked) > most:
                        raise ReadingFailed("unpacks_too_large")
        except (zipfile.BadZipFile, zlib.error, OSError, ValueError, NotImplementedError, EOFError) as error:
            raise ReadingFailed("document_damaged") from error
        self._left -= len(unpacked)
        return bytes(unpacked)
