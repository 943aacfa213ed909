"""The base class of the configuration's tables (immutable, strict, closed) and the declaration of a setting.

Not here: the tables themselves (`settings`, `channels`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.config import JsonDict

from gateway.config.value_checks import check_path

# Strict mode rejects text for a path and a list for a tuple, the only types that TOML has for them.
PathSetting = Annotated[Path, Field(strict=False), BeforeValidator(check_path)]


class Section(BaseModel):
    """A table of the file: immutable, strict about types, closed to unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        validate_default=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        protected_namespaces=(),
    )


def setting(
    default: object, description: str, *, example: object = None, expected: str = "", **bounds: Any
) -> Any:
    """Declare a field. `expected` replaces the text made from type and bounds; `example` is the documented
    value of an optional setting."""
    extra: JsonDict | None = {"expected": expected} if expected else None
    examples = None if example is None else [example]
    return Field(
        default=default, description=description, examples=examples, json_schema_extra=extra, **bounds
    )
