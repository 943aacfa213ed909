"""Generate labelled texts from the templates of this folder, with the noise of real messages.

`(a|b)` is a choice, `(a|)` may be left out; choices may be nested. The same seed gives the same texts.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pipeline.safety.plain_words import plain_words
from tools.injection import texts as honest

HERE: Final = Path(__file__).parent
LANGUAGES: Final = ("en", "de", "fr", "es", "more")
LEVELS: Final = (3, 2, 1, 0)
HONEST_ENGLISH: Final = 1_500
HONEST_OTHERS: Final = 150
"""Texts without danger in English and in each other language, from the templates of the shield's model."""
_CHOICE: Final = re.compile(r"\(([^()]*)\)")
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_HEARD: Final = {
    "to": "two", "here": "hear", "know": "no", "die": "dye", "you": "u", "are": "r", "going": "goin", "i'm": "im",
    "don't": "dont", "can't": "cant", "because": "cuz", "tonight": "tonite", "nicht": "nich", "habe": "hab",
    "ich": "isch", "que": "q", "quiero": "kiero", "je": "j", "veux": "veu", "mourir": "mourrir", "want": "wan",
    "morir": "morrir", "myself": "my self", "already": "all ready", "their": "there", "by": "bye",
}  # fmt: skip
"""How speech recognition and hurried fingers write words."""
_BEFORE: Final = {
    "en": "hey|hi|so|honestly|idk|well|look|ok so|sorry but|i need to tell you something|can i tell you something|i know this sounds bad but|tbh|lately|um|yeah|no one knows this but|i had a fight with my mum|it's been a long day|my boyfriend left me",
    "de": "hey|hallo|also|ehrlich gesagt|ich weiß nicht|naja|sorry aber|ich muss dir was sagen|seit wochen|mein freund hat mich verlassen|es war ein langer tag",
    "fr": "salut|bonjour|en fait|franchement|je sais pas|bon|désolé mais|il faut que je te dise|depuis des mois|mon copain m'a quittée|bref",
    "es": "hola|oye|pues|la verdad|no sé|bueno|perdón pero|tengo que decirte algo|desde hace meses|mi novio me dejó|mira",
    "more": "hey|ok",
}
_AFTER: Final = {
    "en": "idk|sorry|lol|haha|please|you know|i guess|thanks|that's all|and i don't know who to tell|what should i do|i'm serious|don't tell anyone|can you help|am i weird",
    "de": "sorry|bitte|weißt du|danke|das ist alles|was soll ich tun|kein witz|sag es keinem|haha",
    "fr": "désolé|s'il te plaît|tu vois|merci|voilà|que faire|je suis sérieux|dis rien à personne|mdr",
    "es": "perdón|por favor|sabes|gracias|eso es todo|qué hago|en serio|no se lo digas a nadie|jaja",
    "more": "ok",
}


class Sample(NamedTuple):
    """A text in its plain form, with its level."""

    text: str
    level: int


def templates(language: str) -> Mapping[int, Sequence[str]]:
    """The templates of a language by level."""
    found: dict[int, list[str]] = {level: [] for level in LEVELS}
    level = 0
    for line in (HERE / f"train_{language}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            level = int(line[2:])
        elif line.strip() and not line.startswith("#"):
            found[level].append(line.strip())
    return found


def filled(template: str, rng: random.Random) -> str:
    """A text of a template."""
    while (found := _CHOICE.search(template)) is not None:
        chosen = rng.choice(found[1].split("|"))
        template = template[: found.start()] + chosen + template[found.end() :]
    return " ".join(template.split())


def samples(by_language: Mapping[str, Mapping[int, Sequence[str]]], each: int, seed: int) -> list[Sample]:
    """`each` texts of each template, and prose."""
    rng = random.Random(seed)
    found = []
    for language, by_level in by_language.items():
        neutral = by_level[0]
        for level, of_level in by_level.items():
            for template in of_level:
                for _ in range(each):
                    text = _dressed(filled(template, rng), language, neutral, rng)
                    found.append(Sample(plain_words(text), level))
    return found


def honest_texts(seed: int) -> Iterator[Sample]:
    """Texts without danger: requests, manuals, articles, and what the shield's model takes for an attack."""
    rng = random.Random(seed)
    for grammar in honest.training_grammars():
        count = HONEST_ENGLISH if grammar.language == "en" else HONEST_OTHERS
        for one in honest.samples(grammar, count // 2, rng):
            yield Sample(plain_words(one.text[:300]), 0)


def _dressed(text: str, language: str, neutral: Sequence[str], rng: random.Random) -> str:
    """The text as people send it: with words before and after, without marks, with a mistyped letter."""
    if rng.random() < 0.25:
        text = f"{rng.choice(_BEFORE[language].split('|'))}{rng.choice(('', ',', '.', '...'))} {text}"
    if rng.random() < 0.2:
        text = f"{text}{rng.choice(('', ',', '.', '...'))} {rng.choice(_AFTER[language].split('|'))}"
    if rng.random() < 0.15:
        other = filled(rng.choice(neutral), rng)
        text = f"{other}. {text}" if rng.random() < 0.5 else f"{text}. {other}"
    if rng.random() < 0.5:
        text += rng.choice((".", "!", "?", "...", "."))
    if rng.random() < 0.2:
        text = re.sub(r"[.,!?]", "", text)
    if rng.random() < 0.1:
        text = " ".join(_HEARD.get(word, word) for word in text.split())
    words = text.split()
    if rng.random() < 0.1 and len(words) > 5:
        del words[rng.randrange(len(words))]
        text = " ".join(words)
    if rng.random() < 0.12 and len(text) > 12:
        at = rng.randrange(3, len(text) - 2)
        kind = rng.randrange(3)
        if kind == 0:
            text = text[:at] + text[at + 1 :]
        elif kind == 1:
            text = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
        else:
            text = text[:at] + rng.choice(_LETTERS) + text[at + 1 :]
    return text
