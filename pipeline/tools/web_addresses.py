"""Check which internet addresses may be fetched from: the URL before a name is looked up, the IP address when
a connection is made. No connection is made here."""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import quote, urlsplit

from pipeline.domain.frozen import dataclass

MAX_URL_CHARS = 2_000
_PORTS = {"http": 80, "https": 443}

_CLOSED_V4 = tuple(
    ip_network(block)
    for block in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's host, from every virtual machine
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
"""The blocks of IANA's special-purpose registry, and one cloud's address."""
_OPEN_V6 = ip_network("2000::/3")
"""The only public block of IPv6. Loopback, private, link-local, multicast, mapped
(::ffff:0:0/96) and translated (64:ff9b::/96) addresses are outside of it."""
_CLOSED_V6 = tuple(
    ip_network(block)
    for block in (
        "2001::/23",  # protocols such as Teredo, whose addresses contain an IPv4 address
        "2001:db8::/32",
        "2002::/16",  # 6to4, whose addresses contain one too
        "3fff::/20",
    )
)
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_BRACKETED = re.compile(r"\[[^\[\]]*\](:[0-9]*)?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_UNSAFE = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2000-\u200f\u2028-\u202f\u2066-\u2069\ufeff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestUrl:
    """A URL that may be requested, as far as the URL alone shows."""

    url: str
    """In ASCII, without a fragment."""
    scheme: str
    host: str
    """A name in lower case, or an IP address without brackets."""
    port: int


class BadUrl(ValueError):
    """The URL may not be fetched; the text gives the reason."""


def public_only(address: str) -> str:
    """Why nothing is fetched from this IP address; empty for a public one."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return "it is no IP address"
    if isinstance(parsed, IPv4Address):
        closed = any(parsed in block for block in _CLOSED_V4)
    else:
        closed = not _is_public_v6(parsed)
    return "it is not an address of the public internet" if closed else ""


def read_url(text: str, ports: Collection[int] = (80, 443)) -> RequestUrl:
    """The target that `text` names. Raises BadUrl with the reason. No name server is asked."""
    if len(text) > MAX_URL_CHARS:
        raise BadUrl(f"the URL is longer than {MAX_URL_CHARS} characters")
    if _UNSAFE.search(text):
        raise BadUrl("the URL has a blank, a backslash or an invisible character in it")
    try:
        parts = urlsplit(text)
        port, name = parts.port, parts.hostname or ""
    except ValueError as error:
        raise BadUrl(f"the URL cannot be read ({error})") from None
    if parts.scheme not in _PORTS or not text[len(parts.scheme) :].startswith("://"):
        raise BadUrl("the URL must begin with http:// or https://")
    if "@" in parts.netloc:
        raise BadUrl("a URL with a user name or password in it is not fetched")
    bracketed = "[" in parts.netloc
    if bracketed and not _BRACKETED.fullmatch(parts.netloc):
        raise BadUrl("the host is no IP address in its usual form")
    host = _host(name, bracketed=bracketed)
    port = _PORTS[parts.scheme] if port is None else port
    if port not in ports:
        raise BadUrl(f"port {port} is not fetched from")
    # The URL is built from the checked parts, so that no second parser reads the original.
    shown = f"[{host}]" if ":" in host else host
    where = shown if port == _PORTS[parts.scheme] else f"{shown}:{port}"
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = "?" + quote(parts.query, safe="/?%:@!$&'()*+,;=~-._") if parts.query else ""
    return RequestUrl(url=f"{parts.scheme}://{where}{path}{query}", scheme=parts.scheme, host=host, port=port)


def _host(name: str, *, bracketed: bool) -> str:
    if bracketed:
        return _v6(name)
    try:
        # Other alphabets, and look-alike dots and digits, become the name that a resolver would ask for.
        host = name.encode("idna").decode("ascii").lower() if not name.isascii() else name.lower()
    except UnicodeError:
        raise BadUrl("the host is no name of the internet") from None
    host = host.removesuffix(".")
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _v4(host)
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise BadUrl("the host is no name of the internet")
    return host


def _v4(host: str) -> str:
    # Octal, hexadecimal and shortened forms mean different addresses to different programs.
    try:
        return str(IPv4Address(host))
    except ValueError:
        raise BadUrl("the host is no IP address in its usual form") from None


def _v6(host: str) -> str:
    try:
        address = IPv6Address(host)
    except ValueError:
        raise BadUrl("the host is no IP address in its usual form") from None
    if address.scope_id is not None:
        raise BadUrl("an address with a zone belongs to this machine's own network")
    return str(address)


def _is_public_v6(address: IPv6Address) -> bool:
    return (
        address.scope_id is None and address in _OPEN_V6 and not any(address in block for block in _CLOSED_V6)
    )
