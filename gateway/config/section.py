"""What a table of the configuration is: immutable, strict, closed; and how one setting is declared.

Not here: the tables themselves (`settings`, `channels`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.config import JsonDict

from gateway.config.value_checks import check_path

# Strict mode takes no text for a path and no list for a tuple, the only shapes that TOML has for them.
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
    """A field. `expected` replaces the words made from type and bounds; `example` shows an optional one."""
    extra: JsonDict | None = {"expected": expected} if expected else None
    examples = None if example is None else [example]
    return Field(
        default=default, description=description, examples=examples, json_schema_extra=extra, **bounds
    )
