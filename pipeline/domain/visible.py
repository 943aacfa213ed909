"""Remove invisible characters from text that people, pages, servers or models wrote.

The joiners of emoji families and of Persian and Hindi words, and the direction marks next to them, stay:
people use them on purpose. Not here: shortening, and the more strictly cleaned copy that is searched for
attacks (`pipeline.intake.detection`).
"""

from __future__ import annotations

import re
import unicodedata

_LINE_ENDS = re.compile("[\r\x85\u2028\u2029](?:(?<=\r)\n)?")
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
# Each pattern matches its characters first and checks the text before them afterwards: the regex engine then
# skips all other text, and a long text takes a tenth of the time.
_STRAY_SELECTOR = re.compile(
    f"[{_SELECTORS}](?:(?<=\\A[{_SELECTORS}])|(?<=[\\s{_SELECTORS}\u200c-\u200f\u061c][{_SELECTORS}]))"
)
"""One variation selector after a character chooses its appearance; rows of them carry hidden bytes."""
_JOINING = "\u0600-\u08ff\u0900-\u109f\u1780-\u18af\ua840-\ua87f\ua8e0-\ua8ff\ufb50-\ufdff\ufe70-\ufefc"
"""Scripts in which letters change with their neighbours: Arabic, Syriac and N'Ko, those of India and
Sri Lanka, Tibetan, Burmese, Khmer, Mongolian."""
_EMOJI = "\u2190-\u2bff\U0001f000-\U0001faff"
_STRAY_JOINER = re.compile(
    "[\u200c\u200d]"
    f"(?:(?<=\u200c)(?<![{_JOINING}]\u200c)(?![{_JOINING}])"
    f"|(?<=\u200d)(?<![{_JOINING}{_EMOJI}\ufe0f]\u200d)(?![{_JOINING}])"
    f"|(?<=[{_EMOJI}\ufe0f]\u200d)(?![{_JOINING}{_EMOJI}]))"
)
_STRAY_MARK = re.compile(
    "[\u200e\u200f\u061c](?<=[A-Za-z][\u200e\u200f\u061c])[\u200e\u200f\u061c]*(?=[A-Za-z])"
)
"""A direction mark between two Latin letters has no use."""


def visible_text(text: str) -> str:
    """`text` with line ends as LF and without useless invisible characters: control characters except TAB
    and LF, characters that reorder or hide text, lone joiners, marks and selectors. Idempotent; takes time
    proportional to the length."""
    # Most texts: there is nothing to remove.
    if text.isascii() and (text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable()):
        return text
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


def is_seen(char: str) -> bool:
    """Whether a character of a name or a label is white space or visible; False for joiners too."""
    return char.isspace() or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co")
