"""The size limit that applies before any decoder gets a file, checked in the gateway and in the worker."""

from __future__ import annotations

from voice.errors import AudioRefused

_MEGABYTE = 1024 * 1024


def check_size(size: int, *, max_bytes: int) -> None:
    """Raise AudioRefused with `too_large` if `size` bytes are more than `max_bytes`."""
    if size > max_bytes:
        raise AudioRefused(
            "too_large",
            f"That recording is larger than {max_bytes / _MEGABYTE:.3g} MB. Please send a shorter one.",
        )
