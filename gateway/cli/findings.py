"""The result of one check, for `parlour doctor` and `parlour init`. Not the checks."""

from __future__ import annotations

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check."""

    name: str
    good: bool
    words: str
