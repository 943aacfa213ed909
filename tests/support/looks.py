"""Wait between two looks at a store or a process: the processor is left to what is waited for."""

from __future__ import annotations

from pipeline.domain.clock import SystemClock

_LOOK_S = 0.01


async def look_again() -> None:
    """Return when it is time for the next look."""
    await SystemClock().sleep(_LOOK_S)
