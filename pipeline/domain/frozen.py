"""`dataclass` for immutable values of which a turn makes many: the type checker refuses assignments to their
fields, the interpreter does not.

A frozen dataclass sets each field by `object.__setattr__`, so making one takes three times as long (ADR
0047).
Values are compared and hashed by their fields, as frozen ones are.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

__all__ = ("dataclass",)

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool = False, **options: Any) -> Any:
        """See the module's docstring; `options` are those of `dataclasses.dataclass`."""
        return dataclasses.dataclass(unsafe_hash=frozen, **options)
