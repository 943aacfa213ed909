"""Number the messages that show a question of a running turn among the parts of its reply."""

from __future__ import annotations

from pipeline.domain.messages import button_handle

MOST_PARTS = 256
"""Messages of one question."""


def part_number(interaction_id: str, index: int) -> int:
    """The part number of a question's message `index`: far above all parts of the reply."""
    return (int(button_handle(interaction_id)[:12], 16) + 1) * MOST_PARTS + index


def shows_question(interaction_id: str, part: int) -> bool:
    """Whether the part with this number shows the question."""
    return part // MOST_PARTS == part_number(interaction_id, 0) // MOST_PARTS
