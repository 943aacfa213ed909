"""The linear model of the crisis gate: how likely a message is of each level, where the patterns find less.

Hashed features of words, their pairs, their characters and the concepts of `concepts.toml`, scored in
windows of words; a usual message takes less than 100 µs. `tools.crisis` trains the weights. It raises levels
and lowers none.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
import tomllib
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Final, NamedTuple

from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.errors import ParlourError
from pipeline.domain.frozen import dataclass

FILE: Final = Path(__file__).with_name("weights.bin")
CONCEPTS_FILE: Final = Path(__file__).with_name("concepts.toml")
MAGIC: Final = b"parlour crisis weights 2\n"
GROUPS: Final = {"words": 1 << 19, "chars": 1 << 16, "concepts": 1 << 16}
"""The groups of features and the weights of each, powers of two."""
WINDOW: Final = 64
"""Words that are scored together: a letter, whose end often says what its beginning means."""
STRIDE: Final = 32
MOST_WORDS: Final = 2_000
"""Words of a text that are scored, the newest ones."""
_KNOWN_WORDS: Final = 8_192
_KNOWN_TEXTS: Final = 2_048
_MOST_LETTERS: Final = 32
_WORDS, _CHARS, _CONCEPTS = (buckets - 1 for buckets in GROUPS.values())
"""The masks of the groups' buckets."""
_CJK: Final = "\u3040-\u30ff\u4e00-\u9fff"
_TOKEN: Final = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+(?:'[^\W_{_CJK}]+)*|[.!?,;\n]|[🔫🔪🪓🪢💊💀☠⚰🪦😂🤣🩸]")
_NEAR: Final = 5
"""Concepts after a concept that form a pair with it."""


NAMING: Final = (
    *("die", "kill", "live", "suicide", "hurt", "pills", "means", "jump"),
    *("gone", "end", "sleep", "final", "miss", "better", "burden", "hope"),
    *("pain", "place", "point", "note", "tired"),
)
"""The concepts that name danger, or what people say around it."""


COMMON: Final = {
    "en": "the and is of to i im my you it its was with for this that will not no he have at on in a",
    "de": "der die das und ich ist nicht ein eine mit mein du wir sie im den zu von war auf",
    "fr": "le la les et je j est pas un une du des mon ma dans il elle que les l d tu",
    "es": "el la los las y es no un una que mi en con yo lo se del esta son",
}
"""Words without a concept by which a language is known. Without accents some are words of another language's
concepts, as "the" is French tea."""


class BadCrisisWeights(ParlourError):
    """The file of weights cannot be used; the message names it and says why."""

    code = "bad_weights"


class DangerWord(NamedTuple):
    """What is known of a word by itself."""

    number: int
    chars: tuple[int, ...]
    """Buckets of its n-grams of characters."""
    concepts: tuple[int, ...]


class Scores(NamedTuple):
    """Probabilities, from 0 to 1."""

    unclear: float
    """That a text is of level 1 or higher."""
    clear: float
    """That it is of level 2 or higher."""
    imminent: float
    """That it is of level 3."""


QUESTIONS: Final = len(Scores._fields)


class Features(NamedTuple):
    """The buckets of a window, by group."""

    words: list[int]
    chars: list[int]
    concepts: list[int]


class Concepts:
    """The words of `concepts.toml`. One instance serves every thread."""

    def __init__(self, table: Mapping[str, Mapping[str, str]]) -> None:
        names = dict.fromkeys(name for words in table.values() for name in words)
        numbers = {name: number for number, name in enumerate(names, start=1)}
        self._numbers = (numbers["number"],)
        self._naming = frozenset(numbers[name] for name in NAMING if name in numbers)
        self._exact: dict[str, list[int]] = {}
        self._stems: dict[str, list[int]] = {}
        self._languages: dict[str, set[str]] = {}
        common = {word for listed in COMMON.values() for word in listed.split()}
        for language, words in table.items():
            for name, listed in words.items():
                for word in listed.split():
                    found = self._stems if word.endswith("*") else self._exact
                    known = found.setdefault(word.rstrip("*"), [])
                    if numbers[name] not in known:
                        known.append(numbers[name])
                    if language != "any" and word not in common:
                        self._languages.setdefault(word, set()).add(language)

        for language, of_language in COMMON.items():
            for word in of_language.split():
                self._languages.setdefault(word, set()).add(language)
        self._longest_stem = max(map(len, self._stems), default=0)

    def of(self, word: str) -> tuple[int, ...]:
        """The concepts of a word."""
        if (found := self._exact.get(word)) is not None:
            return tuple(found)
        if word.isdecimal():
            return self._numbers
        # Without the bound, a word of as many letters as a message may have takes seconds.
        for end in range(min(len(word), self._longest_stem), 4, -1):
            if (found := self._stems.get(word[:end])) is not None:
                return tuple(found)
        return ()

    def names_danger(self, words: Sequence[str]) -> bool:
        """Whether a word is one that messages of danger have and few others. Of a text that is not in a known
        script it is not known: True."""
        if any(not word.isascii() for word in words):
            return True
        return any(not self._naming.isdisjoint(self.of(word)) for word in words)

    def language_of(self, words: Sequence[str]) -> str:
        """The language that most of the words belong to; empty if it is unclear."""
        votes = Counter(one for word in words for one in self._languages.get(word, ()))
        ranked = votes.most_common(2)
        if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
            return ""
        return ranked[0][0]


@functools.cache
def shipped_concepts() -> Concepts:
    """The concepts of the package."""
    return Concepts(tomllib.loads(CONCEPTS_FILE.read_text(encoding="utf-8")))


def concepts_hash() -> str:
    """The hash of the file of concepts, which weights are trained for."""
    return hashlib.sha256(CONCEPTS_FILE.read_bytes()).hexdigest()


def words_of(plain: str) -> list[str]:
    """The words and marks of a text in its plain form, without those that repeat what it has said."""
    words = [word.replace("'", "") for word in _TOKEN.findall(plain)[-MOST_WORDS:]]
    seen: set[tuple[str, ...]] = set()
    kept = words[:2]
    for run in zip(words, words[1:], words[2:], strict=False):
        if run not in seen:
            seen.add(run)
            kept.append(run[2])
    return kept


def windows_of(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """The windows of a text; the last one ends with it."""
    if len(words) <= WINDOW:
        yield words
        return
    for start in range(0, len(words) - WINDOW, STRIDE):
        yield words[start : start + WINDOW]
    yield words[-WINDOW:]


@functools.lru_cache(maxsize=_KNOWN_WORDS)
def word_of(text: str) -> DangerWord:
    """What is known of a word by itself."""
    marked = f"<{text[:_MOST_LETTERS]}>"
    grams = (
        zlib.crc32(marked[at : at + order].encode()) & _CHARS
        for order in (3, 4, 5)
        for at in range(len(marked) - order + 1)
    )
    return DangerWord(zlib.crc32(text.encode()), tuple(grams), shipped_concepts().of(text))


def features_of(words: Sequence[str]) -> Features:
    """The features of a window of words."""
    known = [word_of(word) for word in words]
    numbers = [one.number for one in known]
    found = [number & _WORDS for number in numbers]
    for step, factor in ((1, 0x9E3779B1), (2, 0xC2B2AE35), (3, 0x27D4EB2F)):
        found += [
            (first * factor + second ^ first >> 7) & _WORDS
            for first, second in zip(numbers, numbers[step:], strict=False)
        ]
    found += [
        (first * 0x85EBCA6B ^ second * 0x9E3779B1 ^ third * 0x27D4EB2F) >> 3 & _WORDS
        for first, second, third in zip(numbers, numbers[1:], numbers[2:], strict=False)
    ]
    chars = [gram for one in known for gram in one.chars]
    # Once each: what is said again and again says no more than once.
    parts = (found, chars, _concept_features([one.concepts for one in known]))
    return Features(*(list(dict.fromkeys(part)) for part in parts))


def _concept_features(by_word: Sequence[tuple[int, ...]]) -> list[int]:
    row = [one for of_word in by_word for one in of_word]
    found = list(row)
    for index, first in enumerate(row):
        after = row[index + 1 : index + 1 + _NEAR]
        base = first << 7
        found += [(base + second) * 0x9E37 >> 1 & _CONCEPTS for second in after]
        found += [
            ((base + second << 7) + third) * 0x9E3779B1 >> 5 & _CONCEPTS
            for second, third in pairwise(after[:4])
        ]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class DangerModel:
    """Weights by question and group. The questions are those of `Scores`."""

    weights: tuple[tuple[memoryview, ...], ...]
    """int8."""
    scales: tuple[tuple[float, ...], ...]
    biases: tuple[float, ...]
    known: BoundedDict[bytes, Scores] = field(
        default_factory=lambda: BoundedDict(_KNOWN_TEXTS), compare=False, repr=False
    )
    """The scores of the last texts, by hashes of these: an earlier message is judged again with each later
    one."""

    def score(self, plain: str) -> Scores:
        """The highest probabilities of the windows of a text in its plain form."""
        return self.score_words(words_of(plain))

    def score_words(self, words: Sequence[str]) -> Scores:
        """As `score`, for the words that `words_of` gives."""
        key = hashlib.blake2b(" ".join(words).encode("utf-8", "replace"), digest_size=16).digest()
        if (known := self.known.get(key)) is not None:
            return known
        scores = [self._of_window(window) for window in windows_of(words)]
        found = self.known[key] = Scores(*map(max, zip(*scores, strict=True)))
        return found

    def _of_window(self, words: Sequence[str]) -> Scores:
        features = [(buckets, math.sqrt(len(buckets))) for buckets in features_of(words)]
        return Scores(*map(self._answer, range(QUESTIONS), [features] * QUESTIONS))

    def _answer(self, question: int, features: Sequence[tuple[list[int], float]]) -> float:
        logit = self.biases[question]
        parts = zip(self.weights[question], self.scales[question], features, strict=True)
        for weights, scale, (buckets, root) in parts:
            if buckets:
                logit += scale * sum([weights[one] for one in buckets]) / root
        return _probability(logit)


def _probability(logit: float) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, logit))))


def to_bytes(rows: Sequence[Sequence[bytes]], header: Mapping[str, object]) -> bytes:
    """The file of a model: the weights by question and group as int8, and what `from_bytes` reads of them."""
    body = b"".join(group for question in rows for group in question)
    known = {**header, "concepts": concepts_hash(), "sha256": hashlib.sha256(body).hexdigest()}
    return MAGIC + json.dumps(known, sort_keys=True).encode() + b"\n" + body


def from_bytes(data: bytes, name: str) -> DangerModel:
    """The model in the bytes of the file `name`. Raises BadCrisisWeights."""
    line, _, body = data.removeprefix(MAGIC).partition(b"\n")
    size = QUESTIONS * sum(GROUPS.values())
    damaged = BadCrisisWeights(f"{name} is damaged or no file of crisis weights; install the package again")
    try:
        header = json.loads(line)
        scales = tuple(tuple(float(one) for one in row) for row in header["scales"])
        biases = tuple(float(one) for one in header["biases"])
        concepts, digest = header["concepts"], header["sha256"]
    except (ValueError, KeyError, TypeError):
        raise damaged from None
    if not data.startswith(MAGIC) or hashlib.sha256(body).hexdigest() != digest:
        raise damaged
    if len(body) != size or not len(scales) == len(biases) == QUESTIONS:
        raise damaged
    if concepts != concepts_hash():
        raise BadCrisisWeights(
            f"{name} was trained with another concepts.toml: train it with `python -m tools.crisis`"
        )
    view = memoryview(body).cast("b")
    ends = list(accumulate(list(GROUPS.values()) * QUESTIONS))
    parts = [view[start:end] for start, end in pairwise((0, *ends))]
    return DangerModel(
        weights=tuple(tuple(parts[at : at + len(GROUPS)]) for at in range(0, len(parts), len(GROUPS))),
        scales=scales,
        biases=biases,
    )


@functools.cache
def shipped_model() -> DangerModel:
    """The model in the package, loaded once. Raises BadCrisisWeights."""
    return from_bytes(read_weights(FILE), str(FILE))


def read_weights(file: Path) -> bytes:
    """The bytes of a file of the package. Raises BadCrisisWeights."""
    try:
        return file.read_bytes()
    except OSError as failure:
        raise BadCrisisWeights(
            f"{file} cannot be read: {failure.strerror}; install the package again"
        ) from None
