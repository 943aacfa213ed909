"""Detect prompt injection in a message. The result is a flag; the message stays unchanged.

The patterns find the well-known attempts and avoid false positives. No message is refused because of this
flag: the tool gate decides what the assistant may do, whatever the prompt says.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from pipeline.intake.detection import for_detection, is_plain, spelled_out, spelled_words, undisguised

_QUANTITY = "(?:all|any|every|everything|of|the|these|those|that|your|my|our|its)"
_EARLIER = "(?:previous|prior|preceding|earlier|above|foregoing|initial|original|former)"
_ORDERS = (
    "(?:instructions?|directions?|directives?|prompts?|rules?|guidelines?|commands?|orders?|programming"
    "|training|constraints?|restrictions?)"
)
_THEIRS = "(?:system|safety|content|default|developer)"
_DROP = "(?:ignore|disregard|forget|override|bypass|discard)"
_CLAUSE_ENDS = r"(?=\s*(?:$|[\n.,;:!?]|and\b|then\b|but\b))"
_BEGINS = r"(?:^|[\n.!?:;\"'(\[]\s?|\bplease\s|\bnow\s|\bjust\s)"

_KNOWN = (
    rf"(?:\s(?:above|before|you\s(?:know|were|have|ve)\b|i\s(?:said|told)\b|that\scame\b)|{_CLAUSE_ENDS})"
)

_ENGLISH = (
    # At least: ignore previous instructions, disregard your instructions, you are now a new AI.
    rf"\b{_DROP}\s(?:{_QUANTITY}\s){{0,4}}{_EARLIER}\s(?:{_THEIRS}\s)?{_ORDERS}\b",
    rf"\bdisregard\s(?:{_QUANTITY}\s){{0,3}}{_ORDERS}\b",
    r"\byou\sare\snow\s(?:an?\s)?(?:new|different)\s(?:ai|assistant|(?:chat)?bot)\b",
    # Forms that the patterns above miss.
    rf"\b{_DROP}\s(?:{_QUANTITY}\s){{0,4}}{_ORDERS}\s(?:above|before|you\s(?:were|have\sbeen)\sgiven)\b",
    rf"\b{_DROP}\s(?:all\s)?(?:of\s)?your\s(?:{_THEIRS}\s)?{_ORDERS}\b",
    rf"\b{_DROP}\s(?:all|any|the)\s(?:{_THEIRS}\s)?(?:prompt|instructions){_CLAUSE_ENDS}",
    rf"\b(?:ignore|disregard)\s(?:all\s|everything\s)?(?:of\s)?(?:the\s)?above{_CLAUSE_ENDS}",
    rf"\b(?:ignore|disregard)\s(?:all\s)?(?:of\s)?your\s(?:previous|prior|earlier){_CLAUSE_ENDS}",
    rf"{_BEGINS}(?:ignore|disregard|forget)\severything{_KNOWN}",
)
# "Drop the earlier instructions", in words without their accents.
_GERMAN = (
    r"\b(?:ignorier(?:e|t|en\ssie)?|vergiss|vergesst|vergessen\ssie|missachte)\s(?:\w+\s){0,3}?"
    r"(?:vorherigen?|bisherigen?|vorigen?|obigen?|fru(?:e)?heren?|vorangegangenen?|vorhergehenden?)\s"
    r"(?:system\W?)?(?:anweisung(?:en)?|instruktion(?:en)?|befehle?|regeln?|vorgaben?|prompts?)\b"
)
_FRENCH = (
    r"\b(?:ignore[rz]?|oublie[rz]?|ne\stiens\spas\scompte\sdes?)\s(?:\w+\s){0,3}?"
    r"(?:instructions?|consignes?|directives?|regles?)\s(?:precedentes?|anterieures?|ci.?dessus|initiales?)\b"
)
_SOUTHERN_DROP = r"(?:ignor(?:a|e|en|ar|ad|are|ate)|olvid(?:a|e|ar)|dimentica|desconsider[ea]|esquec[ae])"
_SOUTHERN_ORDERS = "(?:instrucciones|ordenes|reglas|istruzioni|regole|instrucoes|ordens|regras)"
_SOUTHERN_EARLIER = r"(?:anteriores|previas|precedenti|anteriori|de\sarriba|acima)"
_SOUTHERN = (
    rf"\b{_SOUTHERN_DROP}\s(?:\w+\s){{0,4}}?"
    rf"(?:{_SOUTHERN_ORDERS}\s(?:\w+\s)?{_SOUTHERN_EARLIER}|{_SOUTHERN_EARLIER}\s{_SOUTHERN_ORDERS})\b"
)
"""Spanish, Italian and Portuguese."""
_ROLE = (
    # A line or a sentence in the role of the system: not "File system: NTFS", not the name of an operating
    # system, and not "Topic :: System :: Shells".
    r"(?:^|[\n.!?;:>\])\"'`*#|])\s?(?:-\s)?[*_#\[<]{0,3}"
    r"system(?:\s(?:prompt|message|override|note))?[*_\]>]{0,3}\s?:"
    r"(?!:|\s?(?:windows|linux|mac|ubuntu|debian|fedora|arch|android|ios)\b)"
)
_TEMPLATE = r"\[/?inst\]|<</?sys>>|<\|(?:im_start|im_end|system|endoftext|start_header_id|eot_id)\|>"
"""The marks of Llama's, ChatML's and other chat templates, which turn text into instructions."""
_ORDERED = tuple(re.compile(one, re.IGNORECASE) for one in (*_ENGLISH, _GERMAN, _FRENCH, _SOUTHERN))
PATTERNS = (*_ORDERED, *(re.compile(one, re.IGNORECASE) for one in (_ROLE, _TEMPLATE)))
_STEMS = (
    *("ignor", "disregard", "forget", "overrid", "bypass", "discard", "now"),
    *("vergiss", "vergess", "missachte", "oublie", "compte"),
    *("olvid", "dimentica", "desconsider", "esquec"),
    *("system", "inst]", "sys>>", "<|"),
)
"""Every match of one of the patterns contains one of these. They are found in a hundredth of the time."""
_DAN = re.compile(r"\bdan\b", re.IGNORECASE)


def _joined(pattern: str) -> re.Pattern[str]:
    """The pattern for a text without anything between its words."""
    pattern = pattern.replace(_CLAUSE_ENDS, r"(?=$|\n|and|then|but)")
    pattern = pattern.replace(_BEGINS, r"(?:^|\n|please|now|just)")
    pattern = _ANY_WORDS.sub(r"\\w{0,40}?", pattern)
    return re.compile(pattern.replace(r"\s", "").replace(r"\b", ""), re.IGNORECASE)


_ANY_WORDS = re.compile(r"\(\?:\\w\+\\s\)\{0,\d\}\?")


@functools.cache
def _spelled() -> tuple[re.Pattern[str], ...]:
    """The patterns for text without gaps between words. Built at first use, which is rare."""
    drop = "(?:ignore|disregard|forget|override)(?:all|any|the|of|your|my|these){0,4}"
    first = re.compile(f"{drop}(?:{_EARLIER}{_ORDERS}|instructions)", re.IGNORECASE)
    return (first, *map(_joined, (*_ENGLISH, _GERMAN, _FRENCH, _SOUTHERN)))


def looks_injected(text: str) -> bool:
    """Whether the raw `text` has one of the well-known forms of an injected instruction, also one disguised
    by invisible or look-alike letters, other spaces, spaced-out letters, digits for letters, signs between
    and inside of words, HTML entities or base64."""
    if is_plain(text) and not (may_be_order(text) or "jailbreak" in text.lower()):
        return False
    copy = for_detection(text)
    may_match = may_be_order(copy)
    if (may_match and any(pattern.search(copy) for pattern in PATTERNS)) or _is_dan(copy.split("\n")):
        return True
    joined, words = spelled_out(copy), spelled_words(text)
    if joined and any(pattern.search(joined) for pattern in _spelled()):
        return True
    if words and any(pattern.search(words) for pattern in _ORDERED):
        return True
    # Role and template patterns need the exact signs, which these copies change.
    return any(
        pattern.search(read) for read in undisguised(text, copy) if may_be_order(read) for pattern in _ORDERED
    )


def may_be_order(text: str) -> bool:
    """Whether one of `PATTERNS` may match `text`; False is certain."""
    # Without case, Python's patterns also match some letters for which `lower` has no ASCII letter.
    low = text.lower()
    return not low.isascii() or any(map(low.__contains__, _STEMS))


def _is_dan(lines: Iterable[str]) -> bool:
    """Whether one line asks for a jailbreak by its best-known name. Two searches, because one pattern takes
    quadratic time."""
    for line in lines:
        jailbreak = line.lower().rfind("jailbreak")
        if jailbreak > 0 and _DAN.search(line, 0, jailbreak):
            return True
    return False
