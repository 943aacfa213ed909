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
from collections import Counter
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
    "seed N": r"\(seed \d\)",
    "shelf": r"shel(?:f|ves)",
    "stands": r"stands?",
    "told": r"told",
    "town": r"town",
    "walk": r"(?<!ast\.)walk(?:s|ed|ing)?",
    "ways": r"ways",
    "whoever": r"whoever",
    "nobody": r"nobody",
}
"""Each word with the pattern of its forms. The glossary has the standard terms."""
AREAS: Mapping[str, tuple[str, ...]] = {
    "product": ("adapters", "gateway", "pipeline", "voice"),
    "tests": ("tests", "bench", "evals", "tools", "examples"),
    "documents": ("docs", "README.md", "CONTRIBUTING.md"),
}
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
    """How often each word occurs, by area; identifiers count by their parts (`_ears`, `walk_on`)."""
    # One pattern for all: each character of the sources is looked at once.
    any_word = re.compile("|".join(rf"\b({forms})\b" for forms in WORDS.values()))
    found: Counts = {}
    for area, places in AREAS.items():
        text = "\n".join(_texts(places))
        # `_` and a capital letter end a part of an identifier.
        text = re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", text).lower()
        hits = Counter(match.lastindex for match in any_word.finditer(text))
        found[area] = {word: hits[number] for number, word in enumerate(WORDS, 1)}
    return found


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
        files = [path] if path.is_file() else [*sorted(path.rglob("*.py")), *sorted(path.rglob("*.md"))]
        for file in files:
            if not str(file.relative_to(ROOT)).startswith(_LEFT_OUT) and "__pycache__" not in file.parts:
                yield file.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
