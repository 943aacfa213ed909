"""What a language model reads and writes: roles and chat messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Role = Literal["system", "user", "assistant"]

_TOKENS_PER_MESSAGE = 4
"""Role and separators of one chat message in common templates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One entry of a conversation as the model sees it."""

    role: Role
    content: str
    tokens: int = field(init=False, compare=False, repr=False)
    """Estimated tokens with the role, on the high side. Counted once, because a conversation is
    measured at every turn."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", _estimate(self.content) + _TOKENS_PER_MESSAGE)


def _estimate(text: str) -> int:
    """Three ASCII characters a token, and one token for any other character: small models'
    vocabularies are poor outside English, and a prompt that overflows the window is refused whole."""
    chars = len(text)
    ascii_chars = chars if text.isascii() else sum(map(str.isascii, text))
    return -(-ascii_chars // 3) + chars - ascii_chars
