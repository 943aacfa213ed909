"""Build what reads the pictures and documents that people send, for the composition root and the doctor."""

from __future__ import annotations

from gateway.config import Settings
from gateway.reading.limits import ReadingLimits
from gateway.reading.reader_client import SandboxedReader
from pipeline.domain.clock import Clock

_MB = 1_000_000


def build_reader(settings: Settings, clock: Clock) -> SandboxedReader:
    """The file reader. It starts no process before the first file."""
    wanted = settings.files
    limits = ReadingLimits(
        max_bytes=wanted.max_mb * _MB, max_pages=wanted.max_pages, seconds=wanted.read_timeout_s
    )
    return SandboxedReader(limits, clock)
