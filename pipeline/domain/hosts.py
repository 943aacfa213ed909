"""Find the hosts that a text names: addresses with a scheme, and bare names such as `example.org/path`.

It finds rather too many: programs that turn bare names into links know every top-level domain, so `README.md`
is a host here as well. Linear in the text's length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipeline.domain.frozen import dataclass

_DOTS = str.maketrans("\u3002\uff0e\uff61\u2024", "....")
"""Other characters that browsers read as a dot."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}:[\\/]{2}")
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9+-]{0,20}:[\\/]*")
"""A scheme before a host, as browsers read it; includes `mailto:`."""
_RUN = re.compile(r"[\w.-]+")
_REST = re.compile(r"[^\s<>\"`]*")
_LAST_LABEL = re.compile(r"[^\W\d_]{2,}|xn--[a-z0-9-]+", re.IGNORECASE)
_NOT_IN_MAIL = ' \t\n<>"`()[]'
_CONTINUES = "/?#:\\"


@dataclass(frozen=True, slots=True)
class NamedHost:
    """A host in a text, and the address that it is part of: `text[start:end]`."""

    start: int
    end: int
    host: str
    """In lower case, without port and user name."""


def named_hosts(text: str) -> Iterator[NamedHost]:
    """The hosts that `text` names, in order, without overlaps."""
    plain = text.translate(_DOTS)
    at = 0
    for scheme in _SCHEME.finditer(plain):
        if scheme.start() < at:
            continue
        yield from _bare(plain, at, scheme.start())
        end = _match_end(_REST, plain, scheme.end())
        yield NamedHost(scheme.start(), end, host_of(plain[scheme.start() : end]))
        at = end
    yield from _bare(plain, at, len(plain))


def host_of(address: str) -> str:
    """The host of an address with or without a scheme; for `mailto:` the domain; empty without a host."""
    rest = address.translate(_DOTS)
    prefix = _PREFIX.match(rest)
    rest = (rest if prefix is None else rest[prefix.end() :]).lstrip("/\\")
    if rest.startswith("["):
        return rest.partition("]")[0].removeprefix("[").lower()
    name, _, _ = re.split(r"[/\\?#]", rest, maxsplit=1)[0].rpartition("@")[2].partition(":")
    return name.strip(".").lower()


def _bare(text: str, at: int, until: int) -> Iterator[NamedHost]:
    """The names without a scheme in `text[at:until]`."""
    done = at
    for run in _RUN.finditer(text, at, until):
        if run.start() < done or not _is_host(run.group()):
            continue
        end = run.end()
        if text[end : end + 1] in _CONTINUES and end < until:
            end = min(until, _match_end(_REST, text, end))
        start = run.start()
        if text[start - 1 : start] == "@":
            # The name before it belongs to a mail address.
            while start > done and text[start - 1] not in _NOT_IN_MAIL:
                start -= 1
        done = end
        yield NamedHost(start, end, run.group().strip("._-").lower())


def _is_host(run: str) -> bool:
    labels = run.strip("._-").split(".")
    if len(labels) < 2 or not all(labels):
        return False
    if _LAST_LABEL.fullmatch(labels[-1]):
        return True
    return len(labels) == 4 and all(label.isdigit() and len(label) <= 3 for label in labels)


def _match_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()
