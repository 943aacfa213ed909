"""What a message refers to, put before its words: the passage it replies to, and whether it was passed on.

The result is what goes on record and what the model reads. Not here: how a channel shows it.
"""

from __future__ import annotations

from pipeline.domain.messages import InboundMessage
from pipeline.intake.cleaning import clean_text

MAX_QUOTED_CHARS = 500
_FORWARDED = "[Forwarded, in somebody else's words:]"


def in_context(message: InboundMessage, words: str) -> str:
    """`words`, typed or heard, with what `message` quotes as a Markdown quote above them, and with a
    mark when the message was forwarded. A message without either gives `words` unchanged."""
    parts = [f"{_FORWARDED}\n{words}" if message.forwarded else words]
    quoted = clean_text(message.quoted)
    if quoted:
        if len(quoted) > MAX_QUOTED_CHARS:
            quoted = quoted[: MAX_QUOTED_CHARS - 1].rstrip() + "…"
        parts.insert(0, "\n".join(f"> {line}".rstrip() for line in quoted.split("\n")))
    return "\n\n".join(parts)


def own_words(text: str) -> str:
    """`text`, made by `in_context`, without what stands above the author's own words; all of it where nothing
    else is there. For flags: what somebody else wrote is not held against who quotes it."""
    above, gap, words = text.partition("\n\n")
    quotes = bool(gap) and all(line.startswith(">") for line in above.split("\n"))
    return (words if quotes else text).removeprefix(_FORWARDED).strip() or text
