"""Compare paths and hosts with the patterns of rules.

A pattern is compared without case. In a path `*` matches any characters but `/`, `**` any folders, and `?`
one character; in a host `*` matches anything. No file is read here.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from functools import lru_cache
from urllib.parse import unquote

_FILE_SCHEME = re.compile(r"file:(?://(?:localhost)?(?=/)|//)?", re.IGNORECASE)
_DOTS = re.compile("[.\u3002\uff0e\uff61]")
_ANY_FOLDERS = "(?:.*/)?"
_NAME_CHARS = 256
"""Of a path or host that is normalised once; names recur."""
_WINDOWS_DRIVE = re.compile(r"^[a-z]:(?=/)")


@lru_cache(maxsize=1_024)
def path_pattern(glob: str) -> re.Pattern[str]:
    """The expression that matches whole paths, as `normal_path` returns them."""
    parts, at, text = [], 0, normal_path(glob)
    while at < len(text):
        if text.startswith("**/", at):
            parts.append(_ANY_FOLDERS)
            at += 3
        elif text.startswith("**", at):
            parts.append(".*")
            at += 2
        elif text[at] == "*":
            parts.append("[^/]*")
            at += 1
        elif text[at] == "?":
            parts.append("[^/]")
            at += 1
        else:
            parts.append(re.escape(text[at]))
            at += 1
    return re.compile("".join(parts), re.DOTALL)


@lru_cache(maxsize=1_024)
def host_pattern(glob: str) -> re.Pattern[str]:
    """The expression that matches whole hosts, as `normal_host` returns them. `*.example.org` matches
    `example.org` too."""
    text = normal_host(glob)
    if text.startswith("*."):
        return re.compile(rf"(?:.*\.)?{re.escape(text[2:]).replace(re.escape('*'), '.*')}")
    return re.compile(re.escape(text).replace(re.escape("*"), ".*"))


@lru_cache(maxsize=1_024)
def any_path(globs: tuple[str, ...]) -> re.Pattern[str]:
    """One expression that matches what one of `path_pattern` does: one call instead of many. The folders that
    most patterns begin with are matched once for all of them."""
    patterns = [path_pattern(glob).pattern for glob in globs]
    anywhere = [one.removeprefix(_ANY_FOLDERS) for one in patterns if one.startswith(_ANY_FOLDERS)]
    others = [one for one in patterns if not one.startswith(_ANY_FOLDERS)]
    together = [f"{_ANY_FOLDERS}(?:{'|'.join(f'(?:{one})' for one in anywhere)})"] if anywhere else []
    return re.compile("|".join(f"(?:{one})" for one in (*others, *together)), re.DOTALL)


@lru_cache(maxsize=1_024)
def any_host(globs: tuple[str, ...]) -> re.Pattern[str]:
    """One expression that matches what one of `host_pattern` does."""
    return re.compile("|".join(f"(?:{host_pattern(glob).pattern})" for glob in globs))


def normal_path(text: str) -> str:
    """One spelling for all spellings of a path: `/` between folders, no `.` and `..`, no case, NFC. A path
    relative to a folder stays relative."""
    return _one_path(text) if len(text) <= _NAME_CHARS else _one_path.__wrapped__(text)


@lru_cache(maxsize=1_024)
def _one_path(text: str) -> str:
    path = unicodedata.normalize("NFC", plain_path(text)).replace("\\", "/").casefold()
    path = _WINDOWS_DRIVE.sub("", path)
    absolute = path.startswith("/")
    path = posixpath.normpath(path) if path else path
    return f"/{path.lstrip('/')}" if absolute else path


def plain_path(text: str) -> str:
    """The path of an address `file:…`, decoded; any other text as it is."""
    scheme = _FILE_SCHEME.match(text)
    return text if scheme is None else unquote(text[scheme.end() :])


def normal_host(text: str) -> str:
    """One spelling for all spellings of a host: no case, no final dot, other scripts as they are sent."""
    return _one_host(text) if len(text) <= _NAME_CHARS else _one_host.__wrapped__(text)


@lru_cache(maxsize=1_024)
def _one_host(text: str) -> str:
    host = unicodedata.normalize("NFKC", text).casefold().strip().rstrip(".")
    return host if host.isascii() else ".".join(map(_sent, _DOTS.split(host)))


def _sent(label: str) -> str:
    """A part of a host in the ASCII spelling in which it is looked up."""
    try:
        return label.encode("idna").decode("ascii")
    except UnicodeError:
        return label
