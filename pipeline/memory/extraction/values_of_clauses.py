"""The value in a clause: where it ends, and whether it is one at all."""

from __future__ import annotations

import re
from typing import Final

_MAX_WORDS: Final = 12
_END: Final = re.compile(
    r"[,.!?;:()\n]|\s[-\u2013]\s|(?:^|\s)(?:and|but|because|so that|so|which|who|since|although|though|while|when|if|whenever"
    r"|until|und|aber|weil|denn|seit|obwohl|wenn|damit|sondern|et|mais|parce|depuis|car|quand|y|pero|porque|desde"
    r"|cuando|aunque)(?=\s|$)",
    re.IGNORECASE,
)
_TIME: Final = re.compile(
    r"\s+(?:right now|now|today|tonight|at the moment|currently|these days|this \w+|for (?:\w+ )?(?:years|months|weeks)|again"
    r"|too|as well|a lot|so much|very much|most|the most|anymore|any more|though|please|lol"
    r"|heute|gerade|zurzeit|im moment|momentan|sehr|auch|nicht|total|bitte"
    r"|en ce moment|maintenant|aujourd'hui|beaucoup|aussi|actuellement"
    r"|ahora(?: mismo)?|hoy|ultimamente|mucho|también|actualmente)$",
    re.IGNORECASE,
)
_POINTS: Final = re.compile(
    # Words that point at something said before, or begin a clause.
    r"(?:it|this|that|these|those|them|they|he|she|him|her|his|you|your|yours|us|how|when|what|where|who|why|which|if|both|all"
    r"|everything|anything|nothing|something|none|the (?:\w+ )?(?:one|idea|option|answer|version|second|first|last|way|fact)"
    r"|the (?:second|first|last|new|old|other) .*|my|our|myself|to (?:see|know|hear|think|be|say|have|point|ask|thank|get)"
    r"|es|das|dies|diese\w*|dich|dir|dein\w*|ihn|ihr|sie|wie|was|wenn|dass|alles|nichts|mein\w*|mich"
    r"|ça|cela|ceci|celui|celle|ton|ta|tes|te|toi|votre|vos|quand|que|ce|cette|ces|tout|rien|mon|ma|mes|le premier.*|la première.*"
    r"|est[aeo]s?|es[aeo]s?|aquel\w*|tu|tus|su|sus|te|ti|cuando|cómo|como|lo|todo|nada|mi|mis)(?=\s|'|$)",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"[^\W\d_a-zà-öø-ÿ][\w'\u2019-]*(?:\s(?:(?:de|da|del|van|von|der|la|le|di|al)\s)?[^\W\d_a-zà-öø-ÿ][\w'\u2019-]*){0,3}")
_LOWER_NAME: Final = re.compile(r"[^\W\d_][\w'\u2019-]*(?:\s[^\W\d_][\w'\u2019-]*)?")
_ARTICLE: Final = re.compile(
    r"(?:an?|the|my|our|his|her|their|some|not|no|in|on|with|so|very|really|too|just|going|kind|hard|on|at|what|this|that|nothing|none"
    r"|der|die|das|ein\w*|mein\w*|unser\w*|nicht|kein\w*|zu|sehr|la|le|les|un|une|mon|ma|pas|el|los|las|una|mi|no|muy)(?=\s|'|$)",
    re.IGNORECASE,
)
_AFTER_NAME: Final = re.compile(
    # A name ends the clause, or a verb follows it.
    r"\s*(?:$|[,.!?;:()]|(?:and|but|is|was|has|had|lives?|works?|likes?|loves?|comes?|studies|will|can|from|who|turns?|by the way|in|with|since|last|this|next|for|when|now|\d+"
    r"|und|aber|ist|war|hat|wohnt|lebt|arbeitet|kommt|mag|wird|aus|et|mais|est|a|vit|habite|travaille|vient|aime"
    r"|y|pero|es|está|vive|trabaja|viene|tiene)(?=\s|$))",
    re.IGNORECASE,
)


def value_of(text: str, kind: str, *, until: str = "", message: str = "") -> str:
    """The value at the beginning of `text`; empty if it is none of that kind. Names may be in lower case where
    the whole `message` is."""
    if kind in {"name", "place"}:
        return _name(text.strip(), lower=message == message.lower() and kind == "place" or message.islower())
    cut = _END.search(text)
    value = text[: cut.start()] if cut is not None else text
    if until and (stop := re.search(rf"\s(?:{until})(?=\s|$)", value, re.IGNORECASE)) is not None:
        value = value[: stop.start()]
    before = ""
    while before != value:
        before, value = value, _TIME.sub("", value.strip(" '\"*_"))
    if not value or len(value.split()) > _MAX_WORDS or not any(char.isalpha() for char in value):
        return ""
    return "" if kind == "thing" and _POINTS.match(value) is not None else value


def _name(text: str, *, lower: bool) -> str:
    pattern = _LOWER_NAME if lower else _NAME
    found = pattern.match(text)
    if found is None or _ARTICLE.match(text) is not None:
        return ""
    value = found[0]
    if lower:
        # Without capitals only the end of the clause says where a name ends.
        first = value.split()[0]
        value = first if _AFTER_NAME.match(text[len(first) :]) else value
    return value if _AFTER_NAME.match(text[len(value) :]) is not None else ""
