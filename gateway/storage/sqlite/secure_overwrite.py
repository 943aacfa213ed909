"""Overwrite a text in a row so that no byte of it is left in the file."""

from __future__ import annotations


def filled(body: str, old_bytes: int) -> str:
    """`body`, padded with spaces to `old_bytes`, the length in bytes of the body that it replaces.

    SQLite overwrites a row of unchanged size in place, including overflow pages. A row that shrinks is
    removed and added again; pages around it may be rearranged, which leaves copies in their gaps.
    """
    return body + " " * max(0, old_bytes - len(body.encode("utf-8")))
