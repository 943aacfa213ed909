"""What tier 1 examines of a proposal: its type and every text of its payload, each with what it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pipeline.shield.injection.findings import ScanPart
from pipeline.shield.proposal import Proposal
from pipeline.shield.targets import COMMAND_KEYS, PATH_KEYS

_LONGEST_SCHEME: Final = 21
_ADDRESS: Final = re.compile(
    rf"[a-z][a-z0-9+.-]{{0,{_LONGEST_SCHEME - 1}}}://[^\s\"'<>]{{1,4000}}", re.IGNORECASE
)
_MOST_ADDRESSES: Final = 20


def parts_of(proposal: Proposal) -> tuple[ScanPart, ...]:
    """The texts to examine."""
    parts = [ScanPart(kind="type", text=proposal.type, where="type")]
    for key, text in proposal.texts:
        parts += _parts(key, text)
    return tuple(parts)


def _parts(key: str, text: str) -> Iterator[ScanPart]:
    if key in COMMAND_KEYS:
        yield ScanPart(kind="command", text=text, where=key)
    elif key in PATH_KEYS:
        yield ScanPart(kind="path", text=text, where=key)
    elif "://" not in text:
        yield ScanPart(kind="argument", text=text, where=key)
    elif len(text.split(maxsplit=1)) < 2:
        yield ScanPart(kind="url", text=text, where=key)
    else:
        # Language with addresses in it: both are examined.
        yield ScanPart(kind="argument", text=text, where=key)
        yield from (ScanPart(kind="url", text=one, where=key) for one in _addresses(text))


def _addresses(text: str) -> Iterator[str]:
    """The addresses in a text; the last of many with all that follows it."""
    number = end = 0
    # A search from the marks alone: the pattern can begin at any letter, which is slow to try.
    while (mark := text.find("://", end)) >= 0:
        found = _ADDRESS.search(text, max(end, mark - _LONGEST_SCHEME))
        if found is None:
            return
        number += 1
        if number == _MOST_ADDRESSES:
            yield text[found.start() :]
            return
        yield found.group()
        end = found.end()
