"""Learn from an endpoint's refusals which optional parameters it accepts. One object per client.

OpenAI's newer models require `max_completion_tokens` and the default temperature; smaller servers know
neither that name nor `stream_options`. An endpoint does not announce which it accepts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pipeline.llm.completion import ReportedError

_COMPLAINTS = re.compile(
    r"unsupported|not supported|not support|unrecognized|unrecognised|unknown|not permitted|not allowed"
    r"|unexpected|deprecated|extra input"
)
_LIMITS = ("max_tokens", "max_completion_tokens")
_DROPPABLE = ("temperature", "stream_options", "response_format")


class Dialect:
    """The known form of requests for an endpoint; `openai` says that the endpoint is OpenAI's own."""

    def __init__(self, *, openai: bool) -> None:
        # All of OpenAI's models accept the newer name, and the newer models only that.
        self._limits = [*reversed(_LIMITS)] if openai else [*_LIMITS]
        """Names of the length limit that have not been refused; the first is used."""
        self._dropped: set[str] = set()

    def put(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """`body`, whose limit is `max_tokens`, in the endpoint's form."""
        put = {name: value for name, value in body.items() if name not in self._dropped}
        limit = put.pop("max_tokens", None)
        if limit is not None and self._limits:
            put[self._limits[0]] = limit
        return put

    def learn(self, error: ReportedError) -> bool:
        """Adapt the form to a refusal. Returns whether a parameter changed, so that a retry makes sense. The
        number of changes is bounded, because each parameter has a last form."""
        if error.status_code not in (400, 422):
            return False
        text = str(error).lower()
        if _COMPLAINTS.search(f"{error.code.lower()} {text}") is None:
            return False
        blamed = error.param or text
        if self._limits and _names(blamed, self._limits[0]):
            self._limits.pop(0)
            return True
        for name in _DROPPABLE:
            if name not in self._dropped and _names(blamed, name):
                self._dropped.add(name)
                return True
        return False


def _names(text: str, parameter: str) -> bool:
    return re.search(rf"(?<![a-z_]){parameter}(?![a-z_])", text) is not None
