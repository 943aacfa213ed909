"""Rules for requests for reminders and for new notes, in four languages."""

from __future__ import annotations

import re

from pipeline.domain.time_phrases import find_time
from pipeline.llm.request_words import PreparedMessage, Request, is_question, pattern, unquoted
from pipeline.schedules.words import repeated_words

_REMIND = re.compile(
    r"(?<!\w)(?:remind (?:me|us)|(?:set|create|add|make|put)(?: me| up)? (?:an? |the )?(?:reminder|alarm)"
    r"|wake me(?: up)?"
    r"|erinner[ne]? (?:mich|uns)|weck(?:e)? (?:mich|uns)(?: auf)?|stelle? (?:mir )?(?:einen wecker|eine erinnerung)"
    r"|rappelle[- ](?:moi|nous)|(?:me|nous) rappeler|r[ée]veille[- ](?:moi|nous)"
    r"|(?:mets|crée|ajoute)[- ](?:moi )?un (?:rappel|réveil)"
    r"|rec(?:ué|ue|uè|o)rd(?:a|á|e)(?:me|nos)|recordar(?:me|nos)|av[ií]same|avisarme|despi[eé]rtame|despertarme"
    r"|(?:pon|crea|ponme|créame) (?:un recordatorio|una alarma|un aviso))(?!\w)",
    re.IGNORECASE,
)
_REMIND_AT_END = re.compile(r"^(?:mich|uns) (?P<body>.+) (?:erinnern|wecken)[.!?]*$", re.IGNORECASE)
_STATEMENT = re.compile(
    r"(?<!\w)(?:ich|wir|er|sie|you|they|he|she|it|not|don['’]t|never|nicht|il|elle|ne)\s*$", re.IGNORECASE
)
_CONNECTING = re.compile(
    r"^(?:(?:that|about|to|of|for|daran|dass|an|zu|für|que|de|à|para|a)(?=[\s,:])|qu['’]|d['’]|[:,–-])\s*",
    re.IGNORECASE,
)
_LIST = pattern(
    r"^(?:show|list|tell|read|see|what|which|do i|have i|are there|any|my)\b.*\breminders\b",
    r"^(?:zeig\w*|liste?\w*|nenn\w*|welche|was|habe ich|gibt es|meine)\b.*\berinnerungen\b",
    r"^(?:montre\w*|liste|affiche|donne|quels|quelles|ai-je|j'ai|y a-t-il|mes)\b.*\brappels\b",
    r"^¿?(?:muestra\w*|muéstra\w*|lista|enseña\w*|enséña\w*|dime|qué|cuáles|tengo|hay|mis)\b.*\brecordatorios\b",
)
_CANCEL = pattern(
    r"^(?:cancel|delete|remove|drop|forget) (?:the |my |that )?reminder(?: (?:about|to|for|of|with the id))? (?P<en>.+)$",
    r"^(?:lösche?|storniere?|entferne?|streiche?) (?:die |meine )?erinnerung(?: (?:an|zu|für))?(?: (?:den|die|das))? (?P<de>.+)$",
    r"^(?:annule|supprime|efface) (?:le |mon )?rappel(?: (?:pour|de|sur))? (?P<fr>.+)$",
    r"^(?:cancela|borra|elimina|quita) (?:el |mi )?recordatorio(?: (?:de|para|sobre))? (?P<es>.+)$",
)
_NOTE = pattern(
    r"^(?:note(?: down)?(?: that\b|\s*:)|(?:make|take|keep|save|add|write) a note(?: that| of| to| about|\s*:)?\s"
    r"|write down(?: that)?\s|jot down(?: that)?\s|remember(?: that\s|\s*:\s*|\s(?=my |our |this: ))"
    r"|keep in mind that\s|do(?:n't| not) forget that\s|note (?=the |my |this |our )(?:this:)?)\s*[:,]?\s*(?P<en>.+)$",
    r"^(?:notiere?n?(?: dir| mir)?\b|merke? dir\b|schreibe? (?:dir |mir )?auf\b|notiz\s*:"
    r"|mache? (?:dir |mir )?eine notiz\b|vergiss nicht\b|behalte\b(?=,? dass))\s*[:,]?\s*(?:dass\s+)?(?P<de>.+)$",
    r"^schreibe? (?:dir |mir |bitte )(?P<de2>.+) auf[.!]*$",
    r"^(?:note[zr]?(?: bien)? (?:que |qu['’])|note[zr]? ?:|prends (?:en )?note(?: que | qu['’]| de | ?:)"
    r"|retiens (?:que |qu['’])|souviens-toi (?:que |qu['’])|rappelle-toi (?:que |qu['’])"
    r"|(?:écris|ajoute|prends|fais)(?:-moi)? une note ?:?|n['’]oublie pas (?:que |qu['’])|noter (?:que |qu['’]))"
    r"\s*(?P<fr>.+)$",
    r"^(?:anota(?:me|r)?|apunta(?:me|r)?|toma nota|recuerda(?= que)|no olvides(?= que)|guarda una nota|nota ?:"
    r"|escribe una nota|haz una nota|ten en cuenta(?= que))(?: de)?\s*[:,]?\s*(?:que\s+)?(?P<es>.+)$",
)
_NOTE_CHARS = 8_000
_TITLE_CHARS = 60


def reminder(message: PreparedMessage) -> Request | None:
    """A request for a reminder, with the time in the person's own words."""
    match = _REMIND.search(message.text)
    if match is not None:
        before, body, cue = message.text[: match.start()], message.text[match.end() :], match.group()
    else:
        at_end = _REMIND_AT_END.match(message.text)
        if at_end is None:
            return None
        before, body, cue = "", at_end["body"], ""
    if _STATEMENT.search(before) is not None:
        return None  # "Ich erinnere mich an den Sommer."
    if is_question(message.text) or (message.asked and before.strip()):
        return None
    if (repeated := repeated_words(body)) is not None or (repeated := repeated_words(before)) is not None:
        words, other = repeated
        text = _connected(other) or unquoted(_connected(body.replace(words, " ")))
        return Request(tool="repeat_for_me", group="schedule", arguments={"text": text or cue, "when": words})
    when = find_time(body)
    if when is not None:
        body = when.without(body)
    else:
        when = find_time(before)
    body = _connected(body)
    if not body and before.strip(" ,;:"):
        # "I have a meeting, remind me in 10 minutes."
        earlier = find_time(before)
        body = unquoted(before if earlier is None else earlier.without(before))
    if when is None and is_question(body):
        return None  # "Remind me what RAM is": a question in other words.
    arguments: dict[str, object] = {"text": body or cue or message.text}
    if when is not None:
        arguments["when"] = when.text
    return Request(tool="remind_me", group="schedule", arguments=arguments)


def _connected(body: str) -> str:
    """`body` without the words that join it to the request, and without punctuation around it."""
    text = body.strip()
    for _ in range(3):
        shorter = _CONNECTING.sub("", text, count=1).strip()
        if shorter == text:
            break
        text = shorter
    return unquoted(text)


def reminders_shown(message: PreparedMessage) -> Request | None:
    """A request for the list of reminders."""
    if _LIST.match(message.text) is None:
        return None
    return Request(tool="list_reminders", group="schedule")


def reminder_cancelled(message: PreparedMessage) -> Request | None:
    """A request to cancel a reminder, by its id or by words of it."""
    match = _CANCEL.match(message.text)
    if match is None or message.asked:
        return None
    return Request(tool="cancel_reminder", group="schedule", arguments={"id": unquoted(_only(match))[:40]})


def note(message: PreparedMessage) -> Request | None:
    """A request for a note, by a clear verb; a question is never one."""
    match = _NOTE.match(message.text)
    if match is None or message.asked:
        return None
    text = unquoted(_only(match))[:_NOTE_CHARS]
    if not text:
        return None
    return Request(tool="write_note", group="notes", arguments={"title": _title(text), "text": text})


def _title(text: str) -> str:
    """The beginning of the text, in whole words."""
    line = " ".join(text.split())
    return (
        line if len(line) <= _TITLE_CHARS else line[:_TITLE_CHARS].rpartition(" ")[0] or line[:_TITLE_CHARS]
    )


def _only(match: re.Match[str]) -> str:
    return next((found for found in match.groups() if found), "")
