"""The answers of a model that judges."""

from __future__ import annotations

import json


def verdict(action: str, confidence: float = 1.0, feedback: str = "fine") -> str:
    """A judge's answer."""
    return json.dumps({"action": action, "confidence": confidence, "feedback": feedback})
