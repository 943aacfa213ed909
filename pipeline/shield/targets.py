"""Find what a payload names: paths, hosts, and the texts that another tool or person will receive.

A built-in tool has known names for its path arguments. Tools of others use any name, so each short text of
theirs counts as a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from pipeline.shield.globs import normal_host, normal_path

PATH_KEYS = frozenset(
    {"path", "source", "destination", "dir", "directory", "folder", "file", "target", "cwd"}
)
_HOST_KEYS = frozenset({"host", "hostname", "domain", "server", "url", "uri", "href", "link", "address"})
_LONGEST_PATH = 1_024
_NAME_CHARS = 256
"""Of an address whose host is found once; addresses recur."""
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{1,20}\Z", re.IGNORECASE)
_LONGEST_SCHEME = 21
_SPACE = re.compile(r"\s")
_REST = re.compile(r":/{0,2}[^\s\"'<>]+")
COMMAND_KEYS: Final = frozenset({"command", "cmd", "argv", "args", "script", "code"})
"""Arguments whose text is a command or a program, in tools of others too."""
MOST_TARGETS: Final = 4_000
"""The most paths, and the most hosts, of one payload that can be judged. Of more, one more is returned."""


def strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every string in plain data, with the nearest key above it; the keys of mappings that are not
    identifiers are data too."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, one in value.items():
            if not str(name).isidentifier():
                yield key, str(name)
            yield from strings(one, str(name).casefold())
    elif isinstance(value, list | tuple):
        for one in value:
            yield from strings(one, key)


def paths_in(texts: Sequence[tuple[str, str]], *, built_in: bool, command: bool = False) -> tuple[str, ...]:
    """The paths that the `strings` of a payload name, normalised, in lines of any number. `command`: each
    word of a command may be one; of a tool of others, each word of an argument that is named like one."""
    found = (
        normal_path(one)
        for key, text in texts
        if command or not built_in or key in PATH_KEYS
        for one in _candidates(text, words=command or (not built_in and key in COMMAND_KEYS))
        if 0 < len(one) <= _LONGEST_PATH
    )
    return _each_once(found)


def hosts_in(texts: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The hosts of all addresses in the `strings` of a payload, and of arguments that are named like one."""
    return _each_once(_hosts(texts))


def _hosts(texts: Sequence[tuple[str, str]]) -> Iterator[str]:
    for key, text in texts:
        if ":" in text:
            for address in _addresses(text):
                yield from _host_of(address)
        if key not in _HOST_KEYS:
            continue
        plain = text.strip()
        if "://" not in plain and not _SPACE.search(plain):
            # `host`, `host:443`, `host/path` and `//host`.
            yield from _host_of(f"//{plain.lstrip('/')}")


def _each_once(found: Iterable[str]) -> tuple[str, ...]:
    """The first ones, without repetitions."""
    known: dict[str, None] = {}
    for one in found:
        known.setdefault(one)
        if len(known) > MOST_TARGETS:
            break
    return tuple(known)


def _addresses(text: str) -> Iterator[str]:
    """The addresses in a text, from its colons: a search for schemes would try every letter."""
    begun, colon = 0, text.find(":")
    while colon >= 0:
        scheme = _SCHEME.search(text, max(begun, colon - _LONGEST_SCHEME), colon)
        rest = _REST.match(text, colon) if scheme else None
        begun = rest.end() if rest else begun
        if scheme and rest:
            yield text[scheme.start() : rest.end()]
        colon = text.find(":", rest.end() if rest else colon + 1)


def _candidates(text: str, *, words: bool) -> Iterator[str]:
    yield from text.splitlines()
    if words:
        # `--file=PATH`, `key=PATH`, `host:PATH` and paths in the middle of a command line.
        yield from re.split(r"[\s=:,;|&<>()'\"]+", text)


def _host_of(address: str) -> tuple[str, ...]:
    return _parsed_host(address) if len(address) <= _NAME_CHARS else _parsed_host.__wrapped__(address)


@lru_cache(maxsize=1_024)
def _parsed_host(address: str) -> tuple[str, ...]:
    try:
        name = urlsplit(address).hostname
    except ValueError:
        return ()
    return (normal_host(name),) if name else ()
