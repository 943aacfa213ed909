"""The page's tables of texts: those of the package, and those that a folder adds, checked text by text.

English is the source: its keys and places in braces are the rule for every other table. A text with a number
has one form for each plural category of its language (`one`, `few`, `other` …). Not the choice of a language
(`language_choice`), and not the writing of texts into the page (`page_render`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pipeline.domain.frozen import dataclass

SOURCE: Final = "en"
PACKAGED: Final = Path(__file__).parent / "languages"
NAME_KEY: Final = "language"
"""The key of the language's own name."""
IN_PAGE: Final = "page."
"""Texts whose keys begin so are only in index.html; square brackets in them mark keys of a keyboard."""
IN_EDITOR: Final = "editor."
"""Texts whose keys begin so are only in the workflow editor, which is loaded later."""

Text = str | Mapping[str, str]

_TAG = re.compile(r"[a-z]{2,3}(?:-[A-Z][a-z]{3})?(?:-(?:[A-Z]{2}|[0-9]{3}))?")
"""Language, script and region, so that browsers know the tag too."""
_PLACE = re.compile(r"\{(\w+)\}")
_KEYCAP = re.compile(r"\[[^\[\]]+\]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CATEGORIES = ("zero", "one", "two", "few", "many", "other")
_MAX_BYTES = 200_000
_MAX_CHARS = 1_000
_MAX_FILES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """All texts of one language."""

    tag: str
    """A language tag such as `de` or `pt-BR`."""
    name: str
    """The language's own name."""
    texts: Mapping[str, Text]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedTables:
    """What a folder with further languages gave."""

    tables: tuple[TextTable, ...] = ()
    mistakes: tuple[str, ...] = ()
    """Sentences that name file and key; English is shown in place of each text."""
    missing: tuple[str, ...] = ()
    """Sentences that name, per file, the texts that are not in it, which are shown in English."""


def packaged_tables() -> tuple[TextTable, ...]:
    """The tables of the package, English first."""
    tables = [_packaged(path) for path in PACKAGED.glob("*.json")]
    return tuple(sorted(tables, key=lambda one: (one.tag != SOURCE, one.tag)))


def added_tables(folder: Path) -> AddedTables:
    """The tables of the files `TAG.json` in `folder`, in the order of their names. Raises nothing: what
    cannot be used is a mistake."""
    known = {one.tag: one for one in packaged_tables()}
    if not folder.is_dir():
        return AddedTables(mistakes=(f"channels.web.texts: there is no folder {folder}; create it",))
    paths = sorted(folder.glob("*.json"))
    tables: list[TextTable] = []
    mistakes: list[str] = []
    missing: list[str] = []
    if len(paths) > _MAX_FILES:
        mistakes.append(f"{folder}: only the first {_MAX_FILES} of its {len(paths)} files are used")
    for path in paths[:_MAX_FILES]:
        tag, source = path.stem, known[SOURCE]
        if not _TAG.fullmatch(tag):
            mistakes.append(f"{path.name}: the name must be a language tag, such as pt.json or pt-BR.json")
            continue
        if tag in known:
            mistakes.append(f"{path.name}: the page has this language already; the file is not used")
            continue
        found = _read(path)
        if isinstance(found, str):
            mistakes.append(f"{path.name}: {found}; the file is not used")
            continue
        good, wrong = _checked(found, source.texts)
        mistakes += [f"{path.name}: {words}" for words in wrong]
        absent = [key for key in source.texts if key not in found]
        if absent:
            missing.append(f"{path.name}: shown in English, because they are missing: {', '.join(absent)}")
        name = good.get(NAME_KEY)
        own = name if isinstance(name, str) else tag
        tables.append(TextTable(tag=tag, name=own, texts={**source.texts, **good}))
    return AddedTables(tables=tuple(tables), mistakes=tuple(mistakes), missing=tuple(missing))


def places_of(key: str, text: Text) -> set[str]:
    """The names in braces that a text has in any form, and for index.html the number of key caps."""
    forms = [text] if isinstance(text, str) else list(text.values())
    found = {name for form in forms for name in _PLACE.findall(form)}
    if key.startswith(IN_PAGE):
        found.add(f"{max(len(_KEYCAP.findall(form)) for form in forms)} words in square brackets")
    return found


def _packaged(path: Path) -> TextTable:
    texts: dict[str, Text] = json.loads(path.read_text(encoding="utf-8"))
    return TextTable(tag=path.stem, name=str(texts[NAME_KEY]), texts=texts)


def _read(path: Path) -> dict[str, Any] | str:
    """The file's object, or why it has none."""
    if not path.is_file():
        return "not a file"
    try:
        if path.stat().st_size > _MAX_BYTES:
            return f"larger than {_MAX_BYTES:,} bytes"
        content = path.read_text(encoding="utf-8")
        found = json.loads(content, object_pairs_hook=_once)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    except UnicodeDecodeError:
        return "not UTF-8"
    except json.JSONDecodeError as error:
        return f"not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
    except (ValueError, RecursionError) as error:
        return str(error) or "not JSON"
    return found if isinstance(found, dict) else 'not one object with texts by key, such as {"save": "…"}'


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{key} is in it twice")
        found[key] = value
    return found


def _checked(found: Mapping[str, Any], source: Mapping[str, Text]) -> tuple[dict[str, Text], list[str]]:
    """The usable texts, and the mistakes of the others."""
    good: dict[str, Text] = {}
    wrong: list[str] = []
    for key, text in found.items():
        if key not in source:
            wrong.append(f"{key}: the page has no text with this key; remove it")
            continue
        why = _mistake(key, text, source[key])
        if why:
            wrong.append(f"{key}: {why}; it is shown in English")
        else:
            good[key] = text
    return good, wrong


def _mistake(key: str, text: Any, source: Text) -> str:
    """Why a text cannot take the place of `source`; empty if it can."""
    plural = isinstance(text, dict) and not isinstance(source, str)
    forms = list(text.values()) if plural else [text]
    if not all(isinstance(form, str) and form.strip() for form in forms) or not forms:
        kind = (
            "a text" if isinstance(source, str) else 'a text, or an object such as {"one": "…", "other": "…"}'
        )
        return f"must be {kind}"
    if any(_SURROGATE.search(form) for form in forms):
        return "contains half a character (a lone surrogate)"
    if any(len(form) > _MAX_CHARS for form in forms):
        return f"longer than {_MAX_CHARS:,} characters"
    if plural:
        unknown = [form for form in text if form not in _CATEGORIES]
        if unknown or "other" not in text:
            return f"its forms must be some of {', '.join(_CATEGORIES)}, and always other"
    wanted = places_of(key, source)
    # A form for exactly one or two may write the number as a word.
    given = places_of(key, text) | ({"count"} & wanted if plural else set())
    if given != wanted:
        return f"must contain {_listed(wanted)}, not {_listed(places_of(key, text))}"
    return ""


def _listed(places: set[str]) -> str:
    named = [one if " " in one else "{" + one + "}" for one in sorted(places)]
    return ", ".join(named) or "no place in braces"
