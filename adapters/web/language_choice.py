"""Choose the page's language for a request: the person's choice, else the browser's, else English."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from aiohttp import web

from adapters.web.text_tables import SOURCE

COOKIE: Final = "parlour_language"
"""The person's choice; the page sets it. It names a language and nothing else."""
_MAX_RANGES = 20


def language_of(request: web.BaseRequest, tags: Collection[str]) -> str:
    """The tag of `tags` to answer this request in."""
    chosen = request.cookies.get(COOKIE, "")
    if chosen in tags:
        return chosen
    return accepted_language(request.headers.get("Accept-Language", ""), tags)


def accepted_language(header: str, tags: Collection[str]) -> str:
    """The best of `tags` for an `Accept-Language` header: `de` serves `de-AT`, and `pt-BR` serves `pt`."""
    by_lower = {tag.lower(): tag for tag in tags}
    for wanted in _ranges(header):
        parts = wanted.split("-")
        for length in range(len(parts), 0, -1):
            found = by_lower.get("-".join(parts[:length]))
            if found is not None:
                return found
        for lower, tag in by_lower.items():
            if lower.split("-")[0] == parts[0]:
                return tag
    return SOURCE


def _ranges(header: str) -> list[str]:
    """The header's languages in lower case, the most wanted first, without those that are not wanted."""
    weighted: list[tuple[float, str]] = []
    for part in header.split(",")[:_MAX_RANGES]:
        name, _, weight = part.strip().lower().partition(";")
        try:
            quality = float(weight.strip().removeprefix("q=")) if weight.strip() else 1.0
        except ValueError:
            continue
        if name.strip() and 0 < quality <= 1:
            weighted.append((quality, name.strip()))
    return [name for _, name in sorted(weighted, key=lambda one: -one[0])]
