"""What a language model reads and writes: roles, chat messages, tools and tool calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from pipeline.domain.files import StoredFile, stored_file_from_plain, stored_file_to_plain
from pipeline.domain.frozen import dataclass

Role = Literal["system", "user", "assistant", "tool"]

_TOKENS_PER_MESSAGE = 4
"""Role and separators of one chat message in common templates."""
PICTURE_TOKENS = 1_600
"""Tokens of one picture of at most 1568 by 1568 pixels, rather too many: providers count 800 to 1,600."""
_TOKENS_PER_CALL = 8
"""Id, type and separators of one tool call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """The description of a tool for a model."""

    name: str
    """Letters, digits, `_` and `-`, at most 64: every provider accepts these."""
    description: str
    parameters: Mapping[str, Any]
    """A JSON schema of an object."""
    tokens: int = field(init=False, compare=False, repr=False)
    """Estimated tokens, counted once."""

    def __post_init__(self) -> None:
        tokens = estimate_tokens(self.name + self.description + str(self.parameters))
        object.__setattr__(self, "tokens", tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's call of a tool."""

    id: str
    """From the model, or generated; unique among the calls of one answer."""
    name: str
    arguments: str
    """JSON text as the model wrote it: not validated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One entry of a conversation as the model sees it."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    """For an assistant's message: a `tool` message answers each before any other message follows."""
    tool_call_id: str = ""
    """For a `tool` message: the call that it answers."""
    foreign: str = ""
    """The source of the words in a message, if not the author or the operator: `a web page`."""
    pictures: tuple[StoredFile, ...] = ()
    """For a user's message: the pictures that the model is shown with it, as references. The bytes are loaded
    for each call (`LlmRequest.pictures`)."""
    sends: tuple[StoredFile, ...] = ()
    """For a `tool` message: the files that the tool returned, which are sent with the answer."""
    tokens: int = field(init=False, compare=False, repr=False)
    """Estimated tokens including the role, rather too many. Counted once, because every turn measures its
    conversation."""

    def __post_init__(self) -> None:
        tokens = estimate_tokens(self.content) + _TOKENS_PER_MESSAGE + PICTURE_TOKENS * len(self.pictures)
        for call in self.tool_calls:
            tokens += estimate_tokens(call.name) + estimate_tokens(call.arguments) + _TOKENS_PER_CALL
        object.__setattr__(self, "tokens", tokens)


def estimate_tokens(text: str) -> int:
    """Estimated tokens: one per three ASCII characters, and one for any other character, as the vocabularies
    of small models are poor outside English, and a prompt that overflows the window is refused."""
    chars = len(text)
    ascii_chars = chars if text.isascii() else len(text.encode("ascii", "ignore"))
    return -(-ascii_chars // 3) + chars - ascii_chars


def message_to_plain(message: ChatMessage) -> dict[str, Any]:
    """Plain JSON data; empty values left out. Of pictures it has the references."""
    plain: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        plain["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls
        ]
    if message.tool_call_id:
        plain["tool_call_id"] = message.tool_call_id
    if message.foreign:
        plain["foreign"] = message.foreign
    if message.pictures:
        plain["pictures"] = [stored_file_to_plain(file) for file in message.pictures]
    if message.sends:
        plain["sends"] = [stored_file_to_plain(file) for file in message.sends]
    return plain


def message_from_plain(plain: Mapping[str, Any]) -> ChatMessage:
    """What `message_to_plain` wrote. Raises KeyError or TypeError for anything else."""
    return ChatMessage(
        role=plain["role"],
        content=plain["content"],
        tool_calls=tuple(ToolCall(**call) for call in plain.get("tool_calls", ())),
        tool_call_id=plain.get("tool_call_id", ""),
        foreign=plain.get("foreign", ""),
        pictures=tuple(map(stored_file_from_plain, plain["pictures"])) if "pictures" in plain else (),
        sends=tuple(map(stored_file_from_plain, plain["sends"])) if "sends" in plain else (),
    )
