"""Port for the search in what was said, and the rules that every store shares. A part of `Store`.

Searched are the words of people and the answers in the private threads of one person. Nothing that was said
off the record, and nothing that is forgotten, is found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final, Literal, Protocol

from gateway.storage.identities import Identity
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey

SAID_KINDS: Final = ("user", "assistant")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message or answer that was found."""

    thread: str
    kind: Literal["user", "assistant"]
    text: str
    at: float
    """Unix seconds."""


class SearchBook(Protocol):
    """What was said, by its words."""

    async def find(self, words: str, people: Sequence[Identity], *, limit: int) -> tuple[Said, ...]:
        """The newest messages and answers that have a word beginning with each of `words`, newest first. Read
        are threads in which one of `people` alone writes, in private. Case and accents do not count."""
        ...


def terms_of(text: str) -> list[str]:
    """The words of `text` as they are compared: in lower case and without accents."""
    plain = unicodedata.normalize("NFD", text.lower())
    return _WORD.findall("".join(char for char in plain if not unicodedata.combining(char)))


def account_prefix(identity: Identity) -> str:
    """The beginning of the encoded keys of all threads on the identity's account."""
    key = ThreadKey(channel=identity.channel, account=identity.account, chat="x")
    return key.encode().removesuffix("x")
