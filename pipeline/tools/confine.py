"""Resolve a model's paths within folders that a tool cannot leave, and read and write files there.

Everything here accesses the disk: call it in a thread. Only `write_private` creates files and folders, with
access for the process's own account alone (0700, 0600).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePosixPath

from pipeline.tools.folders import Place, check_name, reason
from pipeline.tools.tool import Refused, ToolFailed

_SLUG_CHARS = 40
_LONGEST_PATH = 300
_BINARY_LOOKED_AT = 8_192
_ADDRESS = re.compile(r"(?:[a-z]|file):", re.IGNORECASE)
"""A drive, or an address of a file, which rules read as the path in it."""
_UNPRINTED = re.compile(r"[\x00-\x1f\x7f]")


def slug(name: str) -> str:
    """A folder or file name for any text: readable, and different for different texts."""
    readable = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:_SLUG_CHARS].strip("-")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{readable}-{digest}" if readable else digest


def person_folder(root: Path, owner: str) -> Path:
    """The folder of a turn's owner (see `TurnScope.owner`); it may not exist yet."""
    return person_place(root, owner).path


def person_place(root: Path, owner: str) -> Place:
    """The same folder as a `Place`: no link below `root` is followed."""
    return Place(root, ("people", slug(owner)))


def inside(folder: Place, given: str) -> Place:
    """The place below `folder` at the path `given`; it may not exist yet.

    Raises Refused for a path that leads outside, and for a text that is no path.
    """
    if _UNPRINTED.search(given):
        raise Refused("path: it must not contain control characters")
    if len(given) > _LONGEST_PATH:
        raise Refused(f"path: it is longer than {_LONGEST_PATH} characters")
    parts = PurePosixPath(given.replace("\\", "/")).parts
    if not parts or parts[0].startswith(("/", "~")) or _ADDRESS.match(given):
        raise Refused("path: give one such as notes.txt or plans/june.md, not an absolute one or an address")
    if ".." in parts:
        raise Refused("path: it must not contain ..")
    for part in parts:
        check_name(part)
    return Place(folder.anchor, (*folder.parts, *parts))


def read_text(place: Place, *, most_bytes: int) -> str:
    """The content of a text file. Raises ToolFailed if the file is missing, larger than `most_bytes` or not
    text, and Refused if it is not an ordinary file."""
    data = read_bytes(place, most_bytes=most_bytes)
    if b"\0" in data[:_BINARY_LOOKED_AT]:
        raise ToolFailed("it is not text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ToolFailed("it is not text in UTF-8") from None


def read_bytes(place: Place, *, most_bytes: int) -> bytes:
    """The content of a file. Raises ToolFailed if the file is missing or larger than `most_bytes`, and
    Refused if it is not an ordinary file."""
    try:
        opened = place.open_to_read()
    except FileNotFoundError:
        raise ToolFailed("there is no such file") from None
    except OSError as error:
        raise ToolFailed(f"it cannot be read ({reason(error)})") from None
    with os.fdopen(opened, "rb") as file:
        size = os.fstat(opened).st_size
        if size > most_bytes:
            raise ToolFailed(f"it is too large: {size} bytes, at most {most_bytes} can be read")
        return file.read(most_bytes)


def write_private(place: Place, text: str) -> None:
    """Replace the file's content by `text`, atomically, and create missing folders. Raises ToolFailed for an
    error of the disk, and Refused if it is not an ordinary file."""
    try:
        place.replace_with(text.encode("utf-8", "replace"))
    except OSError as error:
        raise ToolFailed(f"it cannot be written ({reason(error)})") from None


def text_files(folder: Place, *, most: int) -> Iterator[tuple[str, Place]]:
    """Up to `most` ordinary files below `folder` with their paths relative to it, by name. Hidden files and
    links are left out."""
    return islice(folder.files(), most)
