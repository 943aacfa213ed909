"""Forgetting a text that a row holds, so that no byte of it is left in the file."""

from __future__ import annotations


def filled(body: str, old_bytes: int) -> str:
    """`body` with spaces up to the length in bytes of the one whose place it takes.

    A row whose size does not change is written over in place, overflow pages included. One that shrinks is
    removed and added again, and the pages around it may be rearranged, with copies left in their gaps.
    """
    return body + " " * max(0, old_bytes - len(body.encode("utf-8")))
