"""Make the link that signs a browser in: the page's address with the token in its fragment; also a QR code.

A browser sends a fragment to no server, proxy or log, and the page removes it from the address at once
(docs/adr/0010). The link is as sensitive as the token and is printed in the same places.
"""

from __future__ import annotations

import io
from urllib.parse import quote

from gateway.config import Settings
from gateway.runtime.http_server import Addresses
from pipeline.domain.errors import ConfigurationError


def sign_in_link(origin: str, token: str, name: str = "token") -> str:
    """The link for the page at `origin`, with the secret under `name` in its fragment."""
    return f"{origin}/#{name}={quote(token, safe='')}"


def qr_code(link: str) -> str:
    """`link` as a QR code for a terminal: about 20 lines of block characters."""
    import segno  # noqa: PLC0415 - the gateway prints the link at each start, and seldom a code

    drawn = io.StringIO()
    segno.make(link, error="l", micro=False).terminal(drawn, border=2, compact=True)
    return drawn.getvalue()


def access_token(settings: Settings) -> str:
    """The page's token, made or configured. Raises ConfigurationError if there is none yet."""
    reference = settings.channels.web.token
    if reference is not None:
        return reference.resolve()
    try:
        return settings.web_token_path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ConfigurationError(
            f"channels.web.token: {settings.web_token_path} cannot be read; start the gateway once"
        ) from error


def reachable_origin(settings: Settings) -> str | None:
    """The address that other devices can open; None if the page is for this machine only."""
    return next(iter(settings.server.public_origins), None)


def print_link(settings: Settings) -> str:
    """The output of `parlour link`: the link for this machine, and the one for others with its QR code.
    Raises ConfigurationError with a readable message."""
    if not settings.channels.web.enabled:
        raise ConfigurationError(
            "channels.web.enabled: the page is switched off, so there is nothing to sign in to"
        )
    links = page_links(settings, "token", access_token(settings))
    return f"{links}Anyone who has a link can use the bot as you do.\n"


def page_links(settings: Settings, name: str, secret: str) -> str:
    """The links to the page for this machine and for others, with the QR code of the latter, whose fragments
    have `secret` under `name`. Raises ConfigurationError if the page's address is not known."""
    origin = reachable_origin(settings)
    lines = []
    if settings.server.port:
        local = Addresses(settings.server.host, settings.server.port, ()).url
        lines.append(f"On this machine:  {sign_in_link(local, secret, name)}")
    elif origin is None:
        raise ConfigurationError(
            "server.port: 0 takes any port, which only the running gateway knows; it prints it"
        )
    if origin is None:
        lines.append("For other devices name the address that they open in server.public_origins.")
    else:
        link = sign_in_link(origin, secret, name)
        lines += [f"On other devices: {link}", "", qr_code(link)]
    return "\n".join(lines) + "\n"
