"""Port for the search in what was said, and the rules that every store shares. A part of `Store`.

Searched are the words of people and the answers in the private threads of one person. Nothing that was said
off the record, and nothing that is forgotten, is found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, Protocol

from gateway.storage.identities import Identity
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey

SAID_KINDS: Final = ("user", "assistant")
_WORD = re.compile(r"[^\W_]+")
_UNMARKED = str.maketrans(dict.fromkeys("`*_#>[]|~", " "))
_BEFORE, _EXCERPT = 40, 160
"""Characters of an excerpt in front of the first word that was found, and in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMessage:
    """One message or answer that was found."""

    thread: str
    kind: Literal["user", "assistant"]
    text: str
    at: float
    """Unix seconds."""


class SearchBook(Protocol):
    """What was said, by its words."""

    async def find(self, words: str, people: Sequence[Identity], *, limit: int) -> tuple[FoundMessage, ...]:
        """The newest messages and answers that have a word beginning with each of `words`, newest first. Read
        are threads in which one of `people` alone writes, in private. Case and accents do not count."""
        ...

    async def newest_in(self, words: str, threads: Collection[str]) -> Mapping[str, FoundMessage]:
        """Of each of `threads` in which `find` would find something, the newest message or answer."""
        ...


def terms_of(text: str) -> list[str]:
    """The words of `text` as they are compared: in lower case and without accents."""
    plain = unicodedata.normalize("NFD", text.lower())
    return _WORD.findall("".join(char for char in plain if not unicodedata.combining(char)))


def excerpt_of(text: str, words: str) -> str:
    """One line of the text around the first of `words`, without Markdown's marks."""
    line = " ".join(text.translate(_UNMARKED).split())
    low = line.casefold()
    places = [place for word in words.casefold().split() if (place := low.find(word)) >= 0]
    begin = max(0, min(places, default=0) - _BEFORE)
    cut = line[begin : begin + _EXCERPT]
    return ("…" if begin else "") + cut + ("…" if begin + _EXCERPT < len(line) else "")


def account_prefix(identity: Identity) -> str:
    """The beginning of the encoded keys of all threads on the identity's account."""
    key = ThreadKey(channel=identity.channel, account=identity.account, chat="x")
    return key.encode().removesuffix("x")
