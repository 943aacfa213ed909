"""The processor time that this process has used: a document is cut before the kernel ends the process."""

from __future__ import annotations

import resource

_SHARE = 0.6


def processor_seconds() -> float:
    """Seconds of processor time since this process began."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def is_late(allowed_s: float) -> bool:
    """Whether so much of the allowed time is used that reading should end with what there is."""
    return processor_seconds() > _SHARE * allowed_s
