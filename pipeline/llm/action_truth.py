"""Detect false answers of a small model: claims of actions no tool took, refusals of actions a tool took.

The checks cover English, German, French and Spanish, and read the beginning of an answer.
"""

from __future__ import annotations

import re

HELD_CHARS = 160
"""The beginning of an answer that is checked before any of it is shown."""
NOTHING_DONE = (
    "I did not do that: no tool was used for this message. I can set reminders, keep notes, read and write your "
    "files, tell the time, do sums and open web pages; say in one sentence which of these you want."
)
TURNED_OFF = "I cannot do that here: the tool for it is turned off. Nothing was done."
WHO = "I am a chat bot. I run on my operator's own computer, with a small open model."
_WHO_ASKED = re.compile(
    r"\b(?:who|whose|chatgpt|gpt|openai|made|created?|developed|wer|gemacht|erschaffen|entwickelt|qui|créée?|quién|creó|hizo)\b",
    re.IGNORECASE,
)
_MAKER = re.compile(
    r"\b(?:i(?: am|['’]m)|(?:created|made|developed|trained|built) by|ich bin|von|je suis|par|soy|por)\b[^.!?\n]{0,60}"
    r"\b(?:openai|chatgpt|gpt-\d|anthropic|claude|alibaba|qwen|google|gemini|microsoft|meta ai)\b",
    re.IGNORECASE,
)
_WANTED = re.compile(
    r"\b(?:remind|remember|note|save|store|send|e-?mail|text|delete|remove|file|schedule|alarm|timer|book|order|buy"
    r"|call|turn|set|add|write|wake|play|keep|calendar|event|appointment"
    r"|erinner\w*|merk\w*|notier\w*|speicher\w*|sende\w*|schick\w*|lösch\w*|datei|wecke?\w*|buche?|bestell\w*|ruf\w*"
    r"|füg\w*|schreib\w*|termin|kalender|stell\w*"
    r"|rappel\w*|réveil\w*|enregistre\w*|envoie\w*|supprime\w*|fichier|ajoute\w*|réserve\w*|commande\w*|appelle\w*|mets"
    r"|écris|agenda"
    r"|recu[eé]rda\w*|anota\w*|apunta\w*|guarda\w*|envía\w*|manda\w*|borra\w*|archivo|añade\w*|agrega\w*|reserva\w*"
    r"|pide|llama\w*|avisa\w*|pon\w*|compra\w*|escrib\w*)\b",
    re.IGNORECASE,
)
_THING = (
    r"(?:reminder|note|file|alarm|timer|e-?mail|message|event|appointment|erinnerung|notiz|datei|nachricht|termin|wecker"
    r"|rappel|fichier|réveil|courriel|recordatorio|nota|archivo|mensaje|correo|alarma)"
)
_CLAIM = re.compile(
    r"\bI(?:['’]ve| have| had)?(?: just| now| already| successfully)? (?:set|saved|noted|stored|recorded|scheduled|sent"
    r"|deleted|removed|booked|added|updated|ordered|e-?mailed|turned|reminded|kept|written down"
    r"|created (?:a|an|the|your) \w*\s?" + _THING + r")\b"
    r"|\bI(?:['’]ll| will)(?: now)? (?:remind|send|remember|note|set|save|schedule|wake|call|e-?mail|keep|book|add|order)\b"
    r"|\b"
    + _THING
    + r"\b[^.!?\n]{0,60}\b(?:has been|have been|is now|was|is|wurde|ist|a été|est|ha sido|fue|se ha)"
    r"(?: now| successfully| erfolgreich| bien)? (?:set|saved|created|sent|deleted|added|scheduled|written|kept|updated"
    r"|gespeichert|erstellt|gesetzt|gesendet|gelöscht|notiert|eingestellt|créée?|enregistrée?|envoyée?|ajoutée?"
    r"|supprimée?|programmée?|guardad[oa]|cread[oa]|enviad[oa]|eliminad[oa]|programad[oa])\b"
    r"|\bich habe\b[^.!?\n]{0,80}\b(?:gespeichert|notiert|gesetzt|gestellt|gesendet|geschickt|gelöscht|hinzugefügt"
    r"|eingetragen|gebucht|bestellt|aufgeschrieben|gemerkt|erinnert)\b"
    r"|\bich (?:werde|erinnere|merke|wecke)\b[^.!?\n]{0,60}\b(?:erinnern|merken|senden|schicken|wecken|dich|mir)\b"
    r"|\bj['’]ai (?:bien )?(?:noté|enregistré|envoyé|ajouté|supprimé|programmé|réservé|sauvegardé|mis)\b"
    r"|\bje (?:vais (?:te|vous) rappeler|(?:te|vous) rappellerai|(?:le )?note)\b"
    r"|\bhe (?:guardado|anotado|enviado|añadido|agregado|eliminado|borrado|programado|reservado|configurado|apuntado)\b"
    r"|\bte (?:recordaré|avisaré|despertaré|enviaré)\b"
    r"|\bhere(?:['’]s| is) (?:a|the|your) (?:updated )?file\b",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"^\W*(?:(?:oh|well|unfortunately|leider|malheureusement|lamentablemente)\W+)?"
    r"(?:i['’]?m (?:very |so |really )?sorry|i am (?:very |so )?sorry|sorry|i apologi[sz]e|i (?:can['’]?t|cannot|am unable to"
    r"|['’]?m unable to|am not able to|['’]m not able to) (?:assist|help|do that|access|fulfil|provide|perform|comply)"
    r"|as an ai\b|es tut mir (?:sehr )?leid|entschuldigung|ich kann (?:dir|ihnen|das|dabei)?[^.]{0,20}nicht"
    r"|je suis (?:vraiment )?désolée?|désolée?|je ne peux pas|lo siento|lo lamento|no puedo)\b",
    re.IGNORECASE,
)


def is_delicate(words: str) -> bool:
    """Whether a message may ask for an action, or who the bot is: then the beginning of the answer is checked
    before it is shown."""
    return _WANTED.search(words) is not None or asks_who(words)


def asks_who(words: str) -> bool:
    """Whether a message may ask who the bot is, or who made it."""
    return _WHO_ASKED.search(words) is not None


def names_a_maker(answer: str) -> bool:
    """Whether the answer names, as the bot's maker, a company that is frequent in training data."""
    return _MAKER.search(answer) is not None


def claims_done(answer: str) -> bool:
    """Whether the answer says that something was done, or will be."""
    return _CLAIM.search(answer) is not None


def is_refusal(answer: str) -> bool:
    """Whether the answer begins by saying sorry, or that it cannot."""
    return _REFUSAL.match(answer[:HELD_CHARS]) is not None
