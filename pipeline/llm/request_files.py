"""Rules for requests about files and existing notes, in four languages."""

from __future__ import annotations

import re

from pipeline.llm.request_words import PreparedMessage, Request, is_quoted, pattern, unquoted

_ENDINGS = r"txt|md|csv|tsv|json|log|ya?ml|toml|html?|xml|ini|conf|cfg|py|js|ts|css|sh|tex|rst|sql"
_PATH = rf"['\"“„«]?\s?(?P<path>(?:(?:own|shared)/)?[\w][\w./-]{{0,200}}\.(?:{_ENDINGS}))(?!\w)\s?['\"”“»]?"
_FILE_WORD = (
    r"(?:(?:the|my|a|an|new|die|der|das|den|dem|meiner?|einer?|le|la|mon|ma|un|une|el|mi|al|del|au|du)\s+){0,4}"
    r"(?:(?:file|list|datei|liste|fichier|archivo|fichero|lista)\s+)?(?:(?:called|named|namens|nommé|llamad[oa])\s+)?"
)
_FOUND = re.compile(rf"(?<![\w./-]){_PATH}", re.IGNORECASE)
"""A path anywhere in a text; it begins at the start of a word, so that a long word is searched once."""
_END = r"\s*[.!?]*$"
_APPEND = (
    re.compile(
        rf"^(?:add|append|put)\s+(?P<text>.+?)\s+(?:to|into|onto|at the end of|in)\s+{_FILE_WORD}{_PATH}{_END}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^(?:füge?|ergänze?|hänge?|setze?|trage?)\s+(?P<text>.+?)\s+(?:zu|zur|in|an|auf|ans)\s+{_FILE_WORD}{_PATH}"
        rf"(?:\s+(?:hinzu|an|ein|dazu))?{_END}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^(?:r?ajoute[rz]?)\s+(?P<text>.+?)\s+(?:à|au|dans|sur)\s+{_FILE_WORD}{_PATH}{_END}", re.IGNORECASE
    ),
    re.compile(
        rf"^(?:añad[ei]r?|añade|agrega[r]?|suma)\s+(?P<text>.+?)\s+(?:a|al|en)\s+{_FILE_WORD}{_PATH}{_END}",
        re.IGNORECASE,
    ),
)
_WRITE = (
    re.compile(
        rf"^(?:write|save|put|store)\s+(?P<text>.+?)\s+(?:to|into|in|as|under)\s+{_FILE_WORD}{_PATH}{_END}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^(?:create|make|write)\s+{_FILE_WORD}{_PATH}\s+(?:with|containing|that says)(?: the)?"
        rf"(?: (?:text|words|content))?\s*:?\s*(?P<text>.+)$",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^(?:schreibe?|speichere?|lege?)\s+(?P<text>.+?)\s+(?:in|als|nach|unter)\s+{_FILE_WORD}{_PATH}(?:\s+ab)?{_END}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^(?:erstelle?|lege?)\s+{_FILE_WORD}{_PATH}\s+(?:an\s+)?mit(?: dem)?(?: (?:text|inhalt))?\s*:?\s*"
        r"(?P<text>.+?)(?:\s+an[.!]*)?$",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^(?:écris|enregistre|sauvegarde|mets)\s+(?P<text>.+?)\s+(?:dans|sous|comme|en)\s+{_FILE_WORD}{_PATH}{_END}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^crée\s+{_FILE_WORD}{_PATH}\s+(?:avec|contenant)(?: le texte)?\s*:?\s*(?P<text>.+)$", re.IGNORECASE
    ),
    re.compile(
        rf"^(?:escribe|guarda|pon)\s+(?P<text>.+?)\s+(?:en|como)\s+{_FILE_WORD}{_PATH}{_END}", re.IGNORECASE
    ),
    re.compile(rf"^crea\s+{_FILE_WORD}{_PATH}\s+con(?: el texto)?\s*:?\s*(?P<text>.+)$", re.IGNORECASE),
)
_DELETE = pattern(
    rf"^(?:delete|remove|erase|lösche?|entferne?|supprime|efface|borra|elimina)\s+{_FILE_WORD}{_PATH}{_END}"
)
_READ = pattern(
    r"^(?:show|open|read|print|cat|display|view|give me|tell me|what(?:'s| is| stands) (?:written )?(?:in|inside)|what does)(?!\w)",
    r"^(?:zeige?|öffne|lies|gib|was (?:steht|ist) in|was enthält|druck\w*)(?!\w)",
    r"^(?:montre|ouvre|lis|affiche|donne|que (?:contient|dit|y a)|qu['’](?:y a|est-ce)|dis-moi)(?!\w)",
    r"^¿?(?:muestra|muéstra\w*|abre|lee|léeme|enseña\w*|enséña\w*|dime|qué (?:hay|dice|contiene|pone|tiene))(?!\w)",
)
_A_WORK = re.compile(
    r"^(?:an?|some|the|my|it|this|that|these|ein(?:e|en)?|das|dies\w*|es|une?|des|le|la|les|ça|cela|ceci|un[oa]?"
    r"|esto|eso|el|los|las)(?!\w)",
    re.IGNORECASE,
)
"""The beginning of a description of a text, as opposed to the text itself: "write a poem to poem.txt"."""
_SEARCH_FILES = pattern(
    r"^(?:which|what) files? (?:mentions?|contains?|ha(?:s|ve)|says?) (?P<a>.+)$",
    r"^(?:search|look)(?: in| through)? my files for (?P<b>.+)$",
    r"^(?:find|search for|look for) (?P<c>.+?) in my files\W*$",
    r"^(?:welche datei(?:en)? (?:erwähn\w*|enth\w*)|in welcher datei steht) (?P<d>.+)$",
    r"^(?:suche?|finde) (?:nach )?(?P<e>.+?) in meinen dateien\W*$",
    r"^quels? fichiers? (?:mentionnent?|contien(?:t|nent)|parlent? de) (?P<f>.+)$",
    r"^(?:cherche|trouve) (?P<g>.+?) dans mes fichiers\W*$",
    r"^¿?(?:qué|cuál(?:es)?) (?:archivos?|ficheros?) (?:menciona\w*|contiene\w*|tienen?) (?P<h>.+)$",
    r"^busca (?P<i>.+?) en mis (?:archivos|ficheros)\W*$",
)
_LIST_FILES = pattern(
    r"^(?:show|list|what|which|do i|are there|see|give me|tell me|my)\b.*?\bfiles\b",
    r"^(?:zeige?|liste|welche|was für|habe ich|gibt es|nenn\w*|meine)\b.*?\bdateien\b",
    r"^(?:montre|liste|affiche|quels|donne|ai-je|mes|y a-t-il)\b.*?\bfichiers\b",
    r"^¿?(?:muestra|muéstra\w*|lista|qué|cuáles|tengo|enseña\w*|enséña\w*|dime|mis|hay)\b.*?\b(?:archivos|ficheros)\b",
)
_OWN_FILES = re.compile(
    r"(?:\b(?:my|the|which|what|any|all)(?: \w+)? files\b|\b(?:meine\w*|die|welche|alle) dateien\b"
    r"|\b(?:mes|les|quels|des) fichiers\b|\b(?:mis|los|qué|cuáles) (?:archivos|ficheros)\b)"
    r"(?P<rest>.*)$",
    re.IGNORECASE,
)
_MINE = re.compile(
    r"^\W*+(?:are there|do (?:i|you) have|have i|there are|do i have|(?:habe|hab) ich|gibt es|sind da|ai-je|y a-t-il"
    r"|j'ai|tengo|hay|son mis archivos|now|here|jetzt|da|an|auf|please|bitte)?\W*$",
    re.IGNORECASE,
)
_SEARCH_NOTES = pattern(
    r"^(?:find|search for|look for) (?:the word )?(?P<a>.+?) in my notes\W*$",
    r"^search my notes for (?P<b>.+)$",
    r"^what do my notes say about (?P<c>.+)$",
    r"^(?:suche?|finde) (?:nach )?(?P<d>.+?) in meinen notizen\W*$",
    r"^was (?:steht|sagen) (?:in )?meine[n]? notizen (?:über|zu[mr]?) (?P<e>.+)$",
    r"^(?:cherche|trouve) (?P<f>.+?) dans mes notes\W*$",
    r"^busca (?P<g>.+?) en mis notas\W*$",
    r"^(?:(?:show|read|open)(?: me)?|what is in) (?:my|the) note (?:about|on|called|named|titled) (?P<h>.+)$",
)
_READ_NOTES = pattern(
    r"^(?:show|list|read|what|which|open|see|tell|give|do i|are there|my)\b.*\b(?:my|any|the|all|which|what) notes\b",
    r"^(?:my )?notes\W*$",
    r"^what (?:have|did|do) (?:i|you) (?:\w+ )*?(?:told|tell|asked?|noted?|remember(?:ed)?|written|write|kept|keep|saved?)"
    r"(?: you)?(?: to (?:keep|note|remember|write|save)\w*(?: down)?| down| for me| from me)\W*$",
    r"^what (?:did i|have i) (?:note|noted)(?: down)?\W*$",
    r"^(?:zeige?|liste|lies|welche|was|öffne|habe ich|gibt es|meine)\b.*\b(?:meine\w*|welche|alle|die) notizen\b",
    r"^(?:zeige?|lies|welche) .*\bnotizen\b",
    r"^was (?:habe ich|hast du|solltest du|sollst du) (?:dir|mir|für mich)\b.*(?:merken|notier\w*|gemerkt|auf(?:ge)?schr\w+|behalten)\W*$",
    r"^(?:montre|liste|lis|affiche|quelles|ouvre|donne)\b.*\b(?:mes|les|quelles sont mes) notes\b",
    r"^qu['’]est-ce que je t['’]ai (?:demandé|dit) de (?:noter|retenir|garder)\W*$",
    r"^¿?(?:muestra|muéstra\w*|lista|lee|léeme|enseña\w*|enséña\w*|qué|cuáles|tengo|dime)\b.*\b(?:mis|las|qué|cuáles son mis) notas\b",
    r"^¿?qué te (?:pedí|dije|he pedido|he dicho) que (?:anotaras|guardaras|recordaras|apuntaras)\W*$",
)
_DELETE_NOTE = pattern(
    r"^(?:delete|remove|erase) (?:the |my )?note (?:about |on |called |named |titled )?(?P<a>.+)$",
    r"^lösche? (?:die |meine )?notiz (?:über |zu |mit )?(?P<b>.+)$",
    r"^(?:supprime|efface) (?:la |ma )?note (?:sur |à propos de )?(?P<c>.+)$",
    r"^(?:borra|elimina) (?:la |mi )?nota (?:de |sobre )?(?P<d>.+)$",
)


def file_changed(message: PreparedMessage) -> Request | None:
    """A request to write, append to or delete a file."""
    text = message.text
    if message.asked:
        return None
    for tool, rules in (("append_file", _APPEND), ("write_file", _WRITE)):
        for rule in rules:
            match = rule.match(text)
            if match is None:
                continue
            content = match["text"]
            if tool == "write_file" and not is_quoted(content) and _A_WORK.match(content):
                return None
            arguments: dict[str, object] = {"path": match["path"], "text": unquoted(content)}
            return Request(tool=tool, group="files", arguments=arguments)
    deleted = _DELETE.match(text)
    if deleted is not None:
        return Request(tool="delete_file", group="files", arguments={"path": deleted["path"]})
    return None


def file_shown(message: PreparedMessage) -> Request | None:
    """A request to read a file, to search files, or to list all."""
    text = message.text
    sought = _SEARCH_FILES.match(text)
    if sought is not None:
        return Request(tool="search_files", group="files", arguments={"text": _only(sought)[:200]})
    path = _FOUND.search(text)
    if path is not None and _READ.match(text):
        return Request(tool="read_file", group="files", arguments={"path": path["path"]})
    own = _OWN_FILES.search(text)
    if path is None and own is not None and _LIST_FILES.match(text) and _MINE.match(own["rest"]):
        return Request(tool="list_files", group="files")
    return None


def notes_shown(message: PreparedMessage) -> Request | None:
    """A request to read, search or delete notes."""
    text = message.text
    deleted = _DELETE_NOTE.match(text)
    if deleted is not None and not message.asked:
        return Request(tool="delete_note", group="notes", arguments={"title": _only(deleted)[:100]})
    sought = _SEARCH_NOTES.match(text)
    if sought is not None:
        return Request(tool="search_notes", group="notes", arguments={"text": _only(sought)[:100]})
    if _READ_NOTES.match(text):
        return Request(tool="read_notes", group="notes")
    return None


def _only(match: re.Match[str]) -> str:
    return unquoted(next((found for found in match.groups() if found), ""))
