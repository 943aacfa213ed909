"""An action: one tool with one set of arguments, and a hash that detects any change of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.domain.frozen import dataclass
from pipeline.tools.shown import shown
from pipeline.tools.tool import Tool, described


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A proposed call of a tool, to be judged and executed."""

    id: str
    """Equal for the same call of the same message, also in a later process."""
    tool: Tool
    payload: Mapping[str, Any]
    hash: str

    @property
    def summary(self) -> str:
        """The action as one readable line, even if the tool's `describe` fails."""
        try:
            return self.tool.describe(self.payload)
        except Exception:  # noqa: BLE001 - a failed description must not fail the call
            return described(self.payload)

    @property
    def unchanged(self) -> bool:
        """Whether the payload is still the proposed one."""
        return action_hash(self.tool.name, self.payload) == self.hash


def action_for(call_id: str, place: str, tool: Tool, payload: Mapping[str, Any]) -> Action:
    """The action of a call; `place` separates the call ids of one answer from those of another.

    Raises ValueError for numbers that are not finite.
    """
    digest = hashlib.sha256(f"{place}\n{call_id}".encode("utf-8", "surrogatepass")).hexdigest()
    fingerprint = action_hash(tool.name, payload)
    return Action(id=f"act_{digest[:24]}", tool=tool, payload=payload, hash=fingerprint)


def action_hash(tool_name: str, payload: Mapping[str, Any]) -> str:
    """SHA-256 in hexadecimal of the canonical JSON: keys sorted, no spaces, whole numbers exact, characters
    not escaped. Raises ValueError for numbers that are not finite. (seed 4: the verifier)"""
    canonical = json.dumps(
        {"payload": payload, "type": tool_name},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
        default=_plain,
    )
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def asked_words(action: Action, foreign: Sequence[str] = ()) -> str:
    """The question, the whole payload (see `shown`) and the action's hash. Nothing is left out: a client that
    shortens a long value has to offer the whole of it. `foreign` names the turn's foreign sources."""
    read = f"This conversation holds text from elsewhere: {', '.join(foreign)}." if foreign else ""
    lines = [f"May I use {action.tool.name}?", read, shown(action.payload), f"SHA-256: {action.hash}"]
    return "\n".join(line for line in lines if line)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not plain data")
