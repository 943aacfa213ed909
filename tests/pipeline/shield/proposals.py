"""Proposals for tests of the shield."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pipeline.shield.proposal import Proposal


def proposal(type_: str, payload: dict[str, Any] | None = None, **given: Any) -> Proposal:
    """An action of Ada's in her private chat."""
    payload = payload or {}
    digest = hashlib.sha256(json.dumps([type_, payload], sort_keys=True, default=str).encode()).hexdigest()
    parts: dict[str, Any] = {
        "action_id": f"act_{digest[:8]}",
        "action_hash": digest,
        "tool": type_,
        "group": "test",
        "type": type_,
        "built_in": type_ != "unknown",
        "reads_only": type_.startswith(("read", "compute", "search", "send_file")),
        "payload": payload,
        "session_id": "ses-1",
        "message_id": "msg-1",
        "thread": "console:local:tests",
        "person": "ada",
        "owner": "ada",
        "private": True,
    }
    return Proposal(**(parts | given))
