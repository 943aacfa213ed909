"""Make a text from the fields of a JSON value, by plain paths: `New issue: {{issue.title}}`.

A path is names and numbers with dots between them. Nothing is computed, and what a field holds is never read
as a template.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pipeline.domain.errors import InvalidInput
from pipeline.domain.frozen import dataclass

_PLACE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_PATH = re.compile(r"\s*([A-Za-z0-9_-]{1,100}(?:\.[A-Za-z0-9_-]{1,100}){0,19})\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiTemplate:
    """A text with places."""

    text: str

    @classmethod
    def parsed(cls, text: str) -> ApiTemplate:
        """The template in `text`. Raises InvalidInput for a place that is no path."""
        for place in _PLACE.findall(text):
            if _PATH.fullmatch(place) is None:
                raise InvalidInput("template: a place is not a path such as {{issue.title}}")
        return cls(text=text)

    def filled(self, value: Any) -> str:
        """The text with the fields of `value`, a JSON value; all of it as JSON where the template is empty.
        Raises InvalidInput that names a path at which there is nothing."""
        if not self.text:
            return json.dumps(value, ensure_ascii=False, indent=1)
        return _PLACE.sub(lambda place: _shown(_field(value, place[1].strip())), self.text)


def _field(value: Any, path: str) -> Any:
    found = value
    for part in path.split("."):
        if isinstance(found, dict) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isascii() and part.isdigit() and int(part) < len(found):
            found = found[int(part)]
        else:
            raise InvalidInput(f"{path}: the JSON has no such field")
    return found


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
