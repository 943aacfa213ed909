"""Shared parts of the request rules: politeness, questions, quotation marks, and building patterns."""

from __future__ import annotations

import re
from dataclasses import field

from pipeline.domain.frozen import dataclass

_POLITE = re.compile(
    r"(?:(?:please|hey|hi|hello|ok(?:ay)?|now|and|so|bitte|hallo|und|bonjour|et|hola|oye|y)[ ,!]+)*"
    r"(?:(?:could|can|would|will) you (?:please |kindly )?|i(?:'d| would) like you to |i (?:want|need) you to "
    r"|(?:kannst|könntest|würdest) du (?:bitte )?(?=mir |mich |dir )?|(?:peux|pourrais|veux)[- ]tu "
    r"(?:s'il te plaît )?|(?:pouvez|pourriez)[- ]vous |(?:puedes|podrías) )?"
    r"(?:please |bitte )?",
    re.IGNORECASE,
)
_QUESTION_START = re.compile(
    r"[¿\s]*(?:what|which|who|whom|whose|when|where|why|how|do|does|did|have|has|had|is|are|was|were|should|shall|may"
    r"|was|welche[rsnm]?|wer|wem|wen|wann|wo|warum|wieso|wie|wieviel|hast|habe|hab|ist|sind|soll|sollte|darf"
    r"|que|quoi|quels?|quelles?|qui|quand|où|pourquoi|comment|combien|est-ce|qu'est-ce|as-tu|ai-je"
    r"|qué|cuál|cuáles|quién|cuándo|dónde|por qué|cómo|cuánt[oa]s?|has|tengo|debo)(?!\w)",
    re.IGNORECASE,
)
_QUOTES = "'\"“”„‘’«»‹›"
_TAIL = " \t.!?,;:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A call of a built-in tool that a message asks for. All texts in the arguments come from the message."""

    tool: str
    group: str
    arguments: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedMessage:
    """One message, prepared for the rules."""

    text: str
    """The message in one line, without politeness before it."""
    asked: bool
    """Whether it is a question and not a polite request."""


def said(words: str) -> PreparedMessage:
    """`words`, prepared for the rules."""
    line = " ".join(words.split())
    match = _POLITE.match(line)
    start = match.end() if match is not None else 0
    polite = line[:start].strip().casefold()
    text = line[start:]
    modal = any(word in polite for word in ("you", "du", "tu", "vous", "puedes", "podrías"))
    starts = _QUESTION_START.match(text) is not None
    return PreparedMessage(text=text, asked=starts or (line.rstrip().endswith("?") and not modal))


def is_question(text: str) -> bool:
    """Whether `text` begins like a question."""
    return _QUESTION_START.match(text) is not None


def pattern(*alternatives: str) -> re.Pattern[str]:
    """A pattern of the alternatives, each at the beginning of the text."""
    return re.compile("|".join(f"(?:{one})" for one in alternatives), re.IGNORECASE)


def unquoted(text: str) -> str:
    """`text` without quotation marks and punctuation around it."""
    bare = text.strip().rstrip(".!?").strip()
    if len(bare) >= 2 and bare[0] in _QUOTES and bare[-1] in _QUOTES:
        return bare[1:-1].strip()
    return text.strip(_TAIL).strip()


def is_quoted(text: str) -> bool:
    """Whether `text` is in quotation marks."""
    bare = text.strip().rstrip(".!?").strip()
    return len(bare) >= 3 and bare[0] in _QUOTES and bare[-1] in _QUOTES
