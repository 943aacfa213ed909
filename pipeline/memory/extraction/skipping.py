"""When a message is not searched for anything to remember."""

from __future__ import annotations

from typing import Final

from pipeline.memory.extraction.outcome import SaidTurn
from pipeline.memory.policy.decisions import is_control_request
from pipeline.memory.policy.small_talk import is_small_talk

SKIPPED: Final = "skipped: "


def skipped(said: SaidTurn) -> str:
    """Why `said` is not searched; empty if it is. Begins with "skipped: "."""
    if said.off_the_record:
        return f"{SKIPPED}off the record"
    if not said.text.strip():
        return f"{SKIPPED}no words of the person"
    if is_small_talk(said.text, asked=said.asked):
        return f"{SKIPPED}small talk"
    if is_control_request(said.text):
        return f"{SKIPPED}a request about the memory"
    return ""
