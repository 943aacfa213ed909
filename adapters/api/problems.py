"""Refusals as problem details (RFC 9457): `application/problem+json`, with one code for each kind.

No text repeats a value of the request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

TITLES: Final[Mapping[int, str]] = {
    400: "The body is not JSON",
    401: "The token is missing or wrong",
    403: "The token may not do this",
    404: "There is no such thing",
    405: "This method is not known here",
    408: "The body came too slowly",
    409: "The question or the run is closed",
    413: "The body is too large",
    415: "The body must be JSON",
    422: "The request is not valid",
    429: "There are too many",
    500: "The gateway failed",
    503: "The gateway cannot take this now",
}
MEDIA_TYPE: Final = "application/problem+json"


class RequestRefused(Exception):
    """A request that is answered with a problem."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        unread: bool = False,
        **more: Any,
    ) -> None:
        """`more` are further members of the problem. `unread`: the body was not read to its end, so that the
        connection cannot be used again."""
        super().__init__(detail)
        self.status = status
        self.headers = dict(headers or {})
        self.unread = unread
        self.body = {
            "type": "about:blank",
            "title": TITLES[status],
            "status": status,
            "detail": detail,
            **more,
        }


def problem_response(refused: RequestRefused) -> web.Response:
    """The response of a refusal."""
    response = web.Response(
        status=refused.status,
        body=json.dumps(refused.body, ensure_ascii=False).encode(),
        headers={"Content-Type": MEDIA_TYPE, "Cache-Control": "no-store", **refused.headers},
    )
    if refused.unread:
        response.force_close()
    return response


def invalid(field: str, what: str) -> RequestRefused:
    """The refusal of a field, `body` for the whole body, or a header by its name."""
    return RequestRefused(422, f"{field}: {what}", errors=[{"field": field, "message": what}])
