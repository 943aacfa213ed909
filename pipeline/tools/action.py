"""An action: one tool with one set of arguments, and a hash that detects any change of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pipeline.domain.frozen import dataclass
from pipeline.runtime.scope import TurnScope
from pipeline.shield.action_types import type_of
from pipeline.shield.proposal import Proposal, refined
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
        return self.hash_now() == self.hash

    def hash_now(self) -> str:
        """The hash of the payload as it is now."""
        return action_hash(self.tool.name, self.payload)


def action_for(call_id: str, place: str, tool: Tool, payload: Mapping[str, Any]) -> Action:
    """The action of a call; `place` separates the call ids of one answer from those of another.

    Raises ValueError for numbers that are not finite.
    """
    digest = hashlib.sha256(f"{place}\n{call_id}".encode("utf-8", "surrogatepass")).hexdigest()
    fingerprint = action_hash(tool.name, payload)
    return Action(id=f"act_{digest[:24]}", tool=tool, payload=payload, hash=fingerprint)


def action_hash(tool_name: str, payload: Mapping[str, Any]) -> str:
    """SHA-256 in hexadecimal of the canonical JSON: keys sorted, no spaces, whole numbers exact, characters
    not escaped. Raises ValueError for numbers that are not finite."""
    canonical = json.dumps(
        {"payload": payload, "type": tool_name},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
        default=_plain,
    )
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not plain data")


def proposal_of(action: Action, scope: TurnScope) -> Proposal:
    """The action with what its judgement depends on."""
    tool = action.tool
    declared = type_of(
        tool.name,
        built_in=tool.built_in,
        declared=tool.action_type,
        reads_only=tool.reads_only,
        own_only=tool.own_only,
    )
    return Proposal(
        action_id=action.id,
        action_hash=action.hash,
        tool=tool.name,
        group=tool.group,
        type=refined(declared, action.payload),
        built_in=tool.built_in,
        reads_only=tool.built_in and tool.reads_only,
        payload=action.payload,
        session_id=scope.session_id,
        message_id=scope.message_id,
        thread=scope.thread.encode(),
        person=scope.author.id,
        owner=scope.owner,
        private=scope.private,
        agent=scope.agent,
        mode=scope.mode,
        foreign=scope.foreign.sources,
    )
