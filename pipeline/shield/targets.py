"""Find what a payload names: paths, hosts, and the texts that another tool or person will receive.

A built-in tool has known names for its path arguments. Tools of others use any name, so each short text of
theirs counts as a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from pipeline.shield.globs import normal_host, normal_path

PATH_KEYS = frozenset(
    {"path", "source", "destination", "dir", "directory", "folder", "file", "target", "cwd"}
)
_HOST_KEYS = frozenset({"host", "hostname", "domain", "server", "url", "uri", "href", "link", "address"})
_LONGEST_PATH = 1_024
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{1,20}\Z", re.IGNORECASE)
_LONGEST_SCHEME = 21
_REST = re.compile(r":/{0,2}[^\s\"'<>]+")
_HOST = re.compile(r"[^\s/:@]+\.[^\s/:@]+", re.IGNORECASE)
_MOST_TARGETS = 64
"""Of one payload; a call with more is judged by the first ones and by its type."""


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


def paths_in(payload: Mapping[str, Any], *, built_in: bool, command: bool = False) -> tuple[str, ...]:
    """The paths that the payload names, normalised. `command`: each word of a command may be one."""
    found: list[str] = []
    for key, text in strings(payload):
        if built_in and not command and key not in PATH_KEYS:
            continue
        if not text or len(text) > _LONGEST_PATH or "\n" in text:
            continue
        found.extend(_candidates(text, words=command))
    return tuple(dict.fromkeys(found))[:_MOST_TARGETS]


def hosts_in(payload: Mapping[str, Any]) -> tuple[str, ...]:
    """The hosts of all addresses in the payload, and of arguments that are named like one."""
    found: list[str] = []
    for key, text in strings(payload):
        for address in _addresses(text[:100_000]):
            found.extend(_host_of(address))
        if key in _HOST_KEYS and "://" not in text and _HOST.fullmatch(text.strip()):
            found.append(normal_host(text))
    return tuple(dict.fromkeys(found))[:_MOST_TARGETS]


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
    yield normal_path(text)
    if not words:
        return
    # `--file=PATH`, `key=PATH`, `host:PATH` and paths in the middle of a command line.
    for word in re.split(r"[\s=:,;|&<>()'\"]+", text):
        if word and word != text:
            yield normal_path(word)


def _host_of(address: str) -> Iterator[str]:
    try:
        name = urlsplit(address).hostname
    except ValueError:
        return
    if name:
        yield normal_host(name)
