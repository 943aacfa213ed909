"""Access checks of the web channel: addresses, tokens, and the headers of every response.

Also used by the gateway's own HTTP server. It decides; the handlers answer.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping

from aiohttp import web

_CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "media-src 'self' blob:",
        "connect-src 'self'",
        "font-src 'self'",
        "manifest-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": _CONTENT_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def security_headers() -> dict[str, str]:
    """The headers of every response: no foreign content, no framing, no content sniffing."""
    return dict(_HEADERS)


def host_allowed(request: web.BaseRequest, allowed: Collection[str]) -> bool:
    """Whether the request names one of the gateway's addresses, exactly and once: prevents DNS rebinding."""
    return _one_of(request.headers.getall("Host", []), allowed)


def origin_allowed(request: web.BaseRequest, allowed: Collection[str]) -> bool:
    """Whether the request comes from one of the gateway's pages, exactly and once; not without an Origin."""
    return _one_of(request.headers.getall("Origin", []), allowed)


def foreign_address_response() -> web.Response:
    """HTTP 403 for a request with a foreign Host or Origin. It repeats nothing of the request."""
    return web.Response(
        status=403,
        text="This address is not one of the gateway's own. Open the address that it printed at its start, "
        "or add this one to server.public_origins.\n",
        headers=security_headers(),
    )


def token_matches(presented: str, expected: str) -> bool:
    """Whether the tokens are equal, compared over bytes in constant time. An empty token never matches."""
    if not expected:
        return False
    return hmac.compare_digest(
        presented.encode("utf-8", "surrogatepass"), expected.encode("utf-8", "surrogatepass")
    )


def _one_of(values: list[str], allowed: Collection[str]) -> bool:
    return len(values) == 1 and values[0] in tuple(allowed)
