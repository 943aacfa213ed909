"""Generate labelled texts from the templates and the messages of this folder, with the noise of real ones.

In templates `(a|b)` is a choice, `(a|)` may be left out; choices may be nested. `name := a|b` defines
`{name}`, a choice, in the same file. A message of `messages` is used as it was written, after its level. A
chunk is what the files of all languages with one name have. The same seed gives the same texts.
"""

from __future__ import annotations

import functools
import random
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pipeline.safety.plain_words import plain_words
from tools.injection import texts as honest

HERE: Final = Path(__file__).parent
MESSAGES: Final = HERE / "messages"
INDIRECT: Final = "w3_"
"""What the chunks of indirect messages and their twins begin with."""
LANGUAGES: Final = ("en", "de", "fr", "es", "more")
LEVELS: Final = (3, 2, 1, 0)
HONEST_ENGLISH: Final = 1_500
HONEST_OTHERS: Final = 250
"""Texts without danger in English and in each other language, from the templates of the shield's model."""
FRAGMENTS: Final = 3
"""Parts of each of them, of 2 to 7 words."""
MANY: Final = 3
"""How many times as many texts a template of many choices gives."""
MANY_CHOICES: Final = 60
_NAMED: Final = re.compile(r"\{(\w+)\}")
_CHOICE: Final = re.compile(r"\(([^()]*)\)")
_GAPS: Final = ("", ",", ".", "...")
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_FILLERS: Final = ("ok", "hi", "also", "hello")
"""What may precede a message that was written whole."""
_HEARD: Final = {
    "to": "two", "here": "hear", "know": "no", "die": "dye", "you": "u", "are": "r", "i'm": "im",
    "don't": "dont", "can't": "cant", "because": "cuz", "tonight": "tonite", "nicht": "nich", "habe": "hab",
    "ich": "isch", "que": "q", "quiero": "kiero", "je": "j", "veux": "veu", "mourir": "mourrir",
    "morir": "morrir", "myself": "my self", "already": "all ready", "their": "there", "by": "bye",
}  # fmt: skip
"""How speech recognition and hurried fingers write words."""


class Message(NamedTuple):
    """A message that was written whole."""

    chunk: str
    language: str
    level: int
    text: str


class Sample(NamedTuple):
    """A text in its plain form, with its level."""

    text: str
    level: int


def templates(language: str) -> Mapping[int, Sequence[str]]:
    """The templates of a language by level."""
    found: dict[int, list[str]] = {level: [] for level in LEVELS}
    for name in ("train", "imminent", "parts", "frames", "everyday"):
        if (file := HERE / f"{name}_{language}.txt").exists():
            read_templates(file, found)
    return found


def read_templates(file: Path, found: Mapping[int, list[str]]) -> None:
    """Add the templates of a file to those of their level."""
    level, named = 0, dict[str, str]()
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        name, is_name, choices = line.partition(" := ")
        if line.startswith("= "):
            level = int(line[2:])
        elif is_name:
            named[name] = f"({_NAMED.sub(lambda one: named[one[1]], choices)})"
        elif line.strip():
            found[level].append(_NAMED.sub(lambda one: named[one[1]], line.strip()))


def messages() -> Sequence[Message]:
    """The messages of every language. Raises ValueError for a line without a level."""
    found = []
    for file in sorted(MESSAGES.glob("*.txt")):
        language, _, chunk = file.stem.partition("_")
        for line in file.read_text(encoding="utf-8").splitlines():
            level, _, text = line.partition(" ")
            if level not in ("0", "1", "2", "3") or not text.strip():
                raise ValueError(f"{file.name}: {line!r} does not begin with a level from 0 to 3")
            found.append(Message(chunk, language, int(level), text.strip()))
    return found


def worded_messages() -> Sequence[Message]:
    """Those from which a model of words can learn. Indirect ones, whose words say nothing, made it worse."""
    return [one for one in messages() if not one.chunk.startswith(INDIRECT)]


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
                for _ in range(each * (MANY if template.count("|") >= MANY_CHOICES else 1)):
                    text = _dressed(filled(template, rng), language, neutral, rng)
                    found.append(Sample(plain_words(text), level))
    return found


def message_samples(chosen: Sequence[Message], each: int, seed: int) -> list[Sample]:
    """`each` texts of each message, a third of them as they were written."""
    rng = random.Random(seed)
    found = []
    for one in chosen:
        for number in range(each):
            plain = number < max(1, each // 3)
            text = one.text if plain else _dressed(one.text, one.language, _FILLERS, rng)
            found.append(Sample(plain_words(text), one.level))
    return found


def honest_texts(seed: int) -> Iterator[Sample]:
    """Texts without danger: requests, manuals, articles, and what the shield's model takes for an attack."""
    rng = random.Random(seed)
    for grammar in honest.training_grammars():
        count = HONEST_ENGLISH if grammar.language == "en" else HONEST_OTHERS
        for one in honest.samples(grammar, count // 2, rng):
            yield Sample(plain_words(one.text[:300]), 0)
            words = one.text.split()
            # Short messages are the most frequent ones, and say little.
            for _ in range(FRAGMENTS):
                start = rng.randrange(max(1, len(words) - 2))
                yield Sample(plain_words(" ".join(words[start : start + rng.randrange(2, 8)])), 0)


@functools.cache
def _around() -> Mapping[str, Mapping[str, Sequence[str]]]:
    found: Mapping[str, Mapping[str, Sequence[str]]] = tomllib.loads(
        (HERE / "around.toml").read_text(encoding="utf-8")
    )
    return found


def _dressed(text: str, language: str, neutral: Sequence[str], rng: random.Random) -> str:
    """The text as people send it: with words before and after, without marks, again and again, mistyped or
    misheard."""
    around = _around()
    if rng.random() < 0.25:
        text = f"{rng.choice(around['before'][language])}{rng.choice(_GAPS)} {text}"
    if rng.random() < 0.2:
        text = f"{text}{rng.choice(_GAPS)} {rng.choice(around['after'][language])}"
    if rng.random() < 0.15:
        other = filled(rng.choice(neutral), rng)
        text = f"{other}. {text}" if rng.random() < 0.5 else f"{text}. {other}"
    if rng.random() < 0.5:
        text += rng.choice((".", "!", "?", "...", "."))
    if rng.random() < 0.2:
        text = re.sub(r"[.,!?]", "", text)
    if rng.random() < 0.04:
        text = " ".join([text] * rng.randrange(2, 13))
    return _mistyped(text, rng)


def _mistyped(text: str, rng: random.Random) -> str:
    """The text, sometimes with words that were misheard or left out, or a wrong letter."""
    if rng.random() < 0.1:
        text = " ".join(_HEARD.get(word, word) for word in text.split())
    words = text.split()
    if rng.random() < 0.1 and len(words) > 5:
        del words[rng.randrange(len(words))]
        text = " ".join(words)
    if rng.random() >= 0.12 or len(text) <= 12:
        return text
    at = rng.randrange(3, len(text) - 2)
    return rng.choice(
        (
            text[:at] + text[at + 1 :],
            text[:at] + text[at + 1] + text[at] + text[at + 2 :],
            text[:at] + rng.choice(_LETTERS) + text[at + 1 :],
        )
    )
