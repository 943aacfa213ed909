"""Rules for requests for the time, a sum, a page or another time zone, in four languages."""

from __future__ import annotations

import re

from pipeline.llm.request_words import PreparedMessage, Request, pattern, unquoted

_NOW = r"(?:\s+(?:now|right now|currently|today|please|jetzt|gerade|heute|bitte|maintenant|aujourd['’]hui|ahora|hoy)){0,4}"
_IN = r"(?:\s+(?:in|à|au|a|en|bei)\s+(?P<{name}>[^?!.,]{{2,60}}?))?"
_END = r"\s*[?!.]*$"


def _asking(name: str, words: str) -> str:
    return rf"^¿?(?:{words}){_NOW}{_IN.format(name=name)}{_NOW}{_END}"


_TIME = pattern(
    _asking(
        "en",
        r"what(?:'s| is) the (?:current |exact )?(?:time|date|day)|what time is it|what time do (?:we|you) have"
        r"|(?:what|which) day (?:of the week )?is (?:it|today)|what(?:'s| is) today['’]s date|how late is it"
        r"|(?:do you have|tell me|give me) the (?:current )?(?:time|date)|current time|what date is it",
    ),
    _asking(
        "de",
        r"wie spät (?:ist es|haben wir(?: es)?)|wie ?viel uhr (?:ist es|haben wir)|welche[rn]? (?:wochen)?tag (?:ist|haben wir)"
        r"|welches datum (?:ist|haben wir)|was für ein (?:wochen)?tag ist|der wievielte ist|welcher tag ist es"
        r"|sag mir die uhrzeit|uhrzeit",
    ),
    _asking(
        "fr",
        r"quelle heure est[- ]il|il est quelle heure|quel jour (?:sommes[- ]nous|est[- ]on|est-ce|on est)"
        r"|quelle est la date(?: d['’]aujourd['’]hui)?|on est quel jour|quelle heure il est|donne-moi l['’]heure",
    ),
    _asking(
        "es",
        r"qué hora es|qué día es|qué fecha es|cuál es la fecha(?: de hoy)?|a qué (?:día|fecha) estamos|qué horas son"
        r"|dime la hora",
    ),
)
_SUM_START = re.compile(
    r"^¿?(?:what(?:'s| is| are)?|how much (?:is|are|does)|compute|calculate|work out|solve"
    r"|was (?:ist|sind|macht|ergibt)|wie ?viel (?:ist|sind|ergibt|macht|gibt)|(?:be)?rechne(?: aus)?"
    r"|combien (?:font|fait|vaut|ça fait)|calcule[rz]?|quel(?:le)? est(?: le résultat de)?|ça fait combien"
    r"|cuánto (?:es|son|da|hace)|calcula|qué es)\s+",
    re.IGNORECASE,
)
_OPERATORS = (
    (
        re.compile(
            r"\b(?:divided by|geteilt durch|durch|divisé par|dividido (?:entre|por)|entre)\b", re.IGNORECASE
        ),
        "/",
    ),
    (
        re.compile(
            r"\b(?:multiplied by|multipliziert mit|multiplié par|multiplicado por|times|mal|fois|por)\b",
            re.IGNORECASE,
        ),
        "*",
    ),
    (re.compile(r"\b(?:plus|más|und)\b", re.IGNORECASE), "+"),
    (re.compile(r"\b(?:minus|weniger|moins|menos)\b", re.IGNORECASE), "-"),
    (re.compile(r"(?<=\d)\s*[x×·]\s*(?=\d)"), "*"),
    (re.compile(r"÷"), "/"),
    (re.compile(r"[−–]"), "-"),
)
_PERCENT = re.compile(
    r"^([\d.]+)\s*(?:%|percent|prozent|pour ?cent|por ciento)\s*(?:of|von|de)\s*([\d.]+)$", re.IGNORECASE
)
_ROOT = re.compile(
    r"^(?:(?:the )?square root of|(?:die )?(?:quadrat)?wurzel (?:aus|von)|(?:la )?racine carrée de|(?:la )?raíz cuadrada de)"
    r"\s*([\d.]+)$",
    re.IGNORECASE,
)
_SUM = re.compile(r"[\d.\s()+*/^%-]+")
_HAS_SUM = re.compile(r"\d\s*\)?\s*[-+*/^%]\s*\(?\s*-?\d")
_DATE_LIKE = re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,2}/\d{1,2}/\d{2,4}")
_MOST_SUM = 150
_ZONE = pattern(
    r"^(?:my time ?zone is|(?:set|change|switch) (?:my|the) time ?zone to|use the time ?zone) (?P<en>.+)$",
    r"^(?:meine zeitzone ist|(?:stelle?|setze?|ändere?) (?:meine|die) zeitzone auf) (?P<de>.+?)(?: um)?$",
    r"^(?:mon fuseau horaire est|(?:mets|règle|change) (?:mon|le) fuseau horaire (?:à|sur|en)) (?P<fr>.+)$",
    r"^(?:mi zona horaria es|(?:pon|cambia) (?:mi|la) zona horaria (?:a|en)) (?P<es>.+)$",
)
_ZONE_NAME = re.compile(r"^(?:now |jetzt |maintenant |ahora )?(?:die |the |celui de |la de )?")
_URL = re.compile(
    # The labels and their number have DNS's limits, and a host begins at the start of a word, so that a long
    # row of letters and dots is searched once.
    r"https?://[^\s<>\"'»“”]+|(?<![\w.-])(?:[a-z0-9-]{1,63}\.){1,12}[a-z]{2,63}(?:/[^\s<>\"'»“”]*)?",
    re.IGNORECASE,
)
_READ_PAGE = pattern(
    r"^(?:open|read|fetch|get|show|summari[sz]e|look at|check|what(?:'s| is) (?:on|at)|what does)(?!\w)",
    r"^(?:öffne|lies|zeige?|fasse?|was (?:steht|sagt|ist) (?:auf|in)?|hole?|ruf\w*)(?!\w)",
    r"^(?:ouvre|lis|affiche|montre|résume|que (?:dit|contient)|qu['’](?:y a|est-ce))(?!\w)",
    r"^¿?(?:abre|lee|muestra|resume|qué (?:dice|hay|pone))(?!\w)",
)


def time_asked(message: PreparedMessage) -> Request | None:
    """A request for the time, here or in a named place."""
    match = _TIME.match(message.text)
    if match is None:
        return None
    place = next((found for found in match.groups() if found), "")
    return Request(tool="current_time", group="system", arguments={"zone": place.strip()} if place else {})


def sum_asked(message: PreparedMessage) -> Request | None:
    """A request for a sum of figures with signs or words between them."""
    text = message.text[:_MOST_SUM]
    start = _SUM_START.match(text)
    rest = text[start.end() :] if start is not None else text
    rest = _figures(rest.strip(" ?!=").rstrip("."))
    percent, root = _PERCENT.match(rest), _ROOT.match(rest)
    if percent is not None:
        expression = f"{percent[1]} / 100 * {percent[2]}"
    elif root is not None:
        expression = f"sqrt({root[1]})"
    else:
        for words, sign in _OPERATORS:
            rest = words.sub(f" {sign} ", rest)
        expression = " ".join(rest.split())
        if not _SUM.fullmatch(expression) or not _HAS_SUM.search(expression) or _DATE_LIKE.search(expression):
            return None
    return Request(tool="calculate", group="system", arguments={"expression": expression})


def _figures(text: str) -> str:
    """Figures in the program's notation: three digits after a comma are thousands, fewer are decimals."""
    return re.sub(r"(?<=\d),(?=\d)", ".", re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text))


def zone_named(message: PreparedMessage) -> Request | None:
    """The author's statement of the time zone they live in."""
    match = _ZONE.match(message.text)
    if match is None or message.asked:
        return None
    zone = _ZONE_NAME.sub("", unquoted(next(found for found in match.groups() if found)))
    return Request(tool="set_time_zone", group="schedule", arguments={"zone": zone[:64]})


def page_asked(message: PreparedMessage) -> Request | None:
    """A request for a web page whose address is in the message."""
    address = _URL.search(message.text)
    if address is None or not _READ_PAGE.match(message.text):
        return None
    url = address.group().rstrip(".,;:!?)")
    if not url.lower().startswith("http"):
        url = f"https://{url}"
    return Request(tool="fetch_page", group="web", arguments={"url": url})
