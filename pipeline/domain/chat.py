"""What a language model reads and writes: roles and chat messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One entry of a conversation as the model sees it."""

    role: Role
    content: str
