"""Cleaning what a user typed, without harming what they meant.

Direction marks, indentation, tables and the joiners of emoji families and of Persian and Hindi words stay:
people mean them. What goes is what no keyboard sends and nobody sees: control characters, characters that
reorder or hide text, and more text than a message may have. Not here: the harder-cleaned copy in which
attacks are looked for (`pipeline.intake.detection`).
"""

from __future__ import annotations

import re

MAX_MESSAGE_CHARS = 100_000
TRUNCATION_MARK = "\n[truncated]"

_LINE_ENDS = re.compile("\r\n?|[\x85\u2028\u2029]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_UNSEEN = re.compile(
    "["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # C0 but TAB and LF, DEL, C1
    "\u00ad\u180e\u200b\u2060-\u2064\ufeff"  # soft hyphen, spaces of no width, invisible operators, BOM
    "\u202a-\u202e\u2066-\u206f"  # bidi overrides and isolates, and what they replaced
    "\ufff9-\ufffb"  # interlinear annotation
    "]"
)
_TAGS = re.compile("[\U000e0000-\U000e007f]")
_FLAGS = re.compile(
    # England, Scotland, Wales: the flags of regions that Unicode recommends, written with tag characters.
    "\U0001f3f4(?:\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067"
    "|\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074"
    "|\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073)\U000e007f"
)
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_STRAY_SELECTOR = re.compile(f"(?:^|(?<=[\\s{_SELECTORS}\u200c-\u200f\u061c]))[{_SELECTORS}]")
"""Behind a sign one variation selector chooses its looks; rows of them carry hidden bytes."""
_JOINING = "\u0600-\u08ff\u0900-\u109f\u1780-\u18af\ua840-\ua87f\ua8e0-\ua8ff\ufb50-\ufdff\ufe70-\ufefc"
"""Scripts in which letters change with what they touch: Arabic, Syriac and N'Ko, those of India and
Sri Lanka, Tibetan, Burmese, Khmer, Mongolian."""
_EMOJI = "\u2190-\u2bff\U0001f000-\U0001faff"
_STRAY_JOINER = re.compile(
    f"(?<![{_JOINING}])\u200c(?![{_JOINING}])"
    f"|(?<![{_JOINING}{_EMOJI}\ufe0f])\u200d(?![{_JOINING}])"
    f"|(?<=[{_EMOJI}\ufe0f])\u200d(?![{_JOINING}{_EMOJI}])"
)
_STRAY_MARK = re.compile("(?<=[A-Za-z])[\u200e\u200f\u061c]+(?=[A-Za-z])")
"""Between two Latin letters no direction needs to be told."""


def clean_text(text: str) -> str:
    """`text` as it is stored and goes to the model: line ends as LF, nothing invisible that was not meant,
    at most 100,000 characters and a mark that the rest is missing. Idempotent."""
    cleaned = _visible(text).strip()
    if len(cleaned) <= MAX_MESSAGE_CHARS:
        return cleaned
    if cleaned.endswith(TRUNCATION_MARK) and len(cleaned) <= MAX_MESSAGE_CHARS + len(TRUNCATION_MARK):
        return cleaned
    # Again, because the cut may part what belongs together: a joiner at the end joins nothing.
    return _visible(cleaned[:MAX_MESSAGE_CHARS]) + TRUNCATION_MARK


def _visible(text: str) -> str:
    unified = _LINE_ENDS.sub("\n", text)
    if unified.isascii():
        return _UNSEEN.sub("", unified)
    seen = _UNSEEN.sub("", _without_tags(_SURROGATES.sub("\ufffd", unified)))
    return _STRAY_MARK.sub("", _STRAY_JOINER.sub("", _STRAY_SELECTOR.sub("", seen)))


def _without_tags(text: str) -> str:
    if _TAGS.search(text) is None:
        return text
    parts: list[str] = []
    start = 0
    for flag in _FLAGS.finditer(text):
        parts += (_TAGS.sub("", text[start : flag.start()]), flag.group())
        start = flag.end()
    return "".join((*parts, _TAGS.sub("", text[start:])))
