"""Parse the JSON text of a document, with an error that says where it is wrong."""

from __future__ import annotations

import json
from typing import Any, Final

from pipeline.domain.errors import GraphError

MAX_BYTES: Final = 1_000_000
"""Of one document, as UTF-8. `frozen_json.MAX_DEPTH` limits its depth."""


def parsed_json(text: str, what: str) -> Any:
    """The value of a JSON text. `what` names the document in errors: `the graph document`. Raises
    GraphError."""
    if len(text) > MAX_BYTES or len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        raise GraphError(f"{what} is larger than {MAX_BYTES} bytes")

    def without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise GraphError(f"{what} has the field {twice!r} twice in one object; keep one of them")
        return found

    try:
        return json.loads(text, object_pairs_hook=without_repetition)
    except json.JSONDecodeError as error:
        raise GraphError(
            f"{what} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    except RecursionError as error:
        raise GraphError(f"{what} is nested too deeply") from error
    except ValueError as error:
        raise GraphError(f"{what} is not usable JSON: {error}") from error
