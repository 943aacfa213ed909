"""Counts words that this project no longer uses, and holds their ceilings.

    python -m tools.language            the counts that differ from the ceilings
    python -m tools.language --write    lower the ceilings to the counts

A ceiling may only fall: `--write` never raises one.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
CEILINGS = Path(__file__).with_name("words.json")
WORDS: Mapping[str, str] = {
    "anew": r"anew",
    "desk": r"desks?",
    "door": r"doors?",
    "ears": r"ears",
    "goes on": r"(?:go|goes|going|went) on",
    "house": r"house",
    "lane": r"lanes?",
    "mind": r"mind",
    "of its own": r"of (?:its|his|her|their) own",
    "seed N": r"(?<!--)seed(?:'s)? [0-4]",
    "shelf": r"shel(?:f|ves)",
    "stands": r"stands?",
    "told": r"told",
    "town": r"town",
    "walk": r"(?<!ast\.)walk(?:s|ed|ing)?",
    "ways": r"ways",
    "whoever": r"whoever",
    "nobody": r"nobody",
}
"""Each word with the pattern of its forms, none of which has a line break. The glossary has the standard
terms."""
_IN_EACH_FORM = {
    "goes on": " on",
    "of its own": " own",
    "seed N": "seed",
    "shelf": "shel",
    "stands": "stand",
}
"""What all forms of a word have in common, where that is not the word."""
AREAS: Mapping[str, tuple[str, ...]] = {
    "product": ("adapters", "gateway", "pipeline", "voice", "deploy"),
    "tests": ("tests", "bench", "evals", "tools", "examples"),
    "documents": ("docs", "README.md", "CONTRIBUTING.md"),
}
_SUFFIXES = frozenset((".css", ".html", ".js", ".md", ".py", ".sh", ".yaml", ".yml"))
"""Not .toml and .json: most of them hold what people say."""
_LEFT_OUT = (
    *("docs/adr/", "docs/seeds.md", "tools/language.py", "tests/data/"),
    *("pipeline/intake/injection.py", "pipeline/llm/request_files.py", "pipeline/llm/request_reminders.py"),
    *("voice/endpointing/phrases.py", "voice/transcription/hallucinations.py"),
    *("tests/pipeline/companion/", "tests/properties/test_exercise_machine.py"),
    "pipeline/memory/recall_request.py",
)
"""Dated records, a table that quotes, this list, other people's texts, and patterns of what people say."""

Counts = dict[str, dict[str, int]]


def counts() -> Counts:
    """How often each word occurs, by area."""
    return {area: counts_in("\n".join(_texts(places))) for area, places in AREAS.items()}


def counts_in(text: str) -> dict[str, int]:
    """How often each word occurs in `text`; identifiers count by their parts (`_ears`, `walk_on`)."""
    # `_` and a capital letter end a part of an identifier.
    parts = re.sub(r"([a-z])([A-Z])", r"\1 \2", text.replace("_", " ")).lower()
    return {
        word: sum(
            len(re.findall(rf"\b(?:{forms})\b", line))
            for line in _lines_with(_IN_EACH_FORM.get(word, word), parts)
        )
        for word, forms in WORDS.items()
    }


def _lines_with(part: str, text: str) -> Iterator[str]:
    """The lines that `part` is in. To look for a fixed text takes a hundredth of what a pattern takes."""
    found = text.find(part)
    while found >= 0:
        end = text.find("\n", found)
        end = len(text) if end < 0 else end
        yield text[text.rfind("\n", 0, found) + 1 : end]
        found = text.find(part, end)


def ceilings() -> Counts:
    """The counts that are allowed."""
    allowed: Counts = json.loads(CEILINGS.read_text(encoding="utf-8"))
    return allowed


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the differences, or write lower ceilings; 1 where a count is above its ceiling."""
    parser = argparse.ArgumentParser(prog="python -m tools.language", description="Count banned words.")
    parser.add_argument("--write", action="store_true", help="lower the ceilings to the counts")
    chosen = parser.parse_args(arguments)
    now, allowed = counts(), ceilings()
    risen = False
    for area, words in now.items():
        for word, count in words.items():
            ceiling = allowed[area][word]
            risen = risen or count > ceiling
            if count != ceiling:
                sys.stdout.write(f"{area}: {word!r} occurs {count} times, {ceiling} are allowed\n")
            allowed[area][word] = min(count, ceiling)
    if chosen.write:
        CEILINGS.write_text(json.dumps(allowed, indent=2) + "\n", encoding="utf-8")
    return 1 if risen else 0


def _texts(places: Sequence[str]) -> Iterator[str]:
    for place in places:
        path = ROOT / place
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            left_out = str(file.relative_to(ROOT)).startswith(_LEFT_OUT)
            if file.suffix in _SUFFIXES and not left_out and file.is_file():
                yield file.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
