"""Messages that rules for a crisis are known to take for danger, and that are none."""

from __future__ import annotations

from typing import Final

KNOWN_FALSE_ALARMS: Final = (
    "this is my last question",
    "did you get my last message?",
    "I'm headed to the river for a swim",
    "let's end it here for today",
    "ran 500 kms",
    "my friend died by suicide last year",
    "I'm done with my homework",
    "my fridge is empty",
    "I'm not going to kill myself",
)
