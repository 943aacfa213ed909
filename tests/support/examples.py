"""How many examples a property gets: few in each run of the suite, many in a long search."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import HealthCheck, settings

_CALM = 100
"""The profile of the suite asks for fewer, that of a long search for more."""


def examples(
    calm: int, *, steps: int | None = None, suppressed: Sequence[HealthCheck] = (HealthCheck.too_slow,)
) -> settings:
    """Settings with `calm` examples, or with those of the profile where it asks for a long search; a machine
    of rules does at most `steps`."""
    most = settings.default.max_examples if settings.default else calm
    found = settings(
        max_examples=most if most > _CALM else calm, deadline=None, suppress_health_check=suppressed
    )
    return found if steps is None else settings(found, stateful_step_count=steps)
