"""The meaning of the reactions that people put on the bot's messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pipeline.domain.messages import Mark

_MARKS: Final[Mapping[str, Mark]] = {
    "\N{THUMBS UP SIGN}": "up",
    "\N{THUMBS DOWN SIGN}": "down",
    "\N{WHITE HEAVY CHECK MARK}": "yes",
    "\N{HEAVY CHECK MARK}": "yes",
    "\N{BALLOT BOX WITH CHECK}": "yes",
    "\N{CROSS MARK}": "no",
    "\N{NEGATIVE SQUARED CROSS MARK}": "no",
}
_NAMES: Final[Mapping[str, Mark]] = {
    "+1": "up",
    "thumbsup": "up",
    "-1": "down",
    "thumbsdown": "down",
    "white_check_mark": "yes",
    "heavy_check_mark": "yes",
    "ballot_box_with_check": "yes",
    "x": "no",
    "negative_squared_cross_mark": "no",
}
_VARIANTS = dict.fromkeys([0xFE0E, 0xFE0F, *range(0x1F3FB, 0x1F400)])
"""Text and emoji form, and the skin tones."""


def mark_of(emoji: str) -> Mark | None:
    """The meaning of an emoji; None for one without any."""
    return _MARKS.get(emoji.translate(_VARIANTS))


def mark_named(name: str) -> Mark | None:
    """The meaning of an emoji's name as in `:thumbsup::skin-tone-2:`, without the outer colons."""
    return _NAMES.get(name.partition("::")[0])
