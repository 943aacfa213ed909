"""The page's source: every sentence comes from the table of texts, and every table has every text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from adapters.web.page_render import render_index
from adapters.web.text_tables import IN_PAGE, NAME_KEY, TextTable, packaged_tables, places_of
from tests.end_to_end.page.fake_gateway import STATIC

TABLES = packaged_tables()
ENGLISH = TABLES[0]
_SHOWN = ("aria-label", "title", "placeholder", "alt", "value", "label")
"""Attributes whose values people see or hear."""
_COMMENT = re.compile(r"/\*.*?\*/|(?<![:'\"`\\])//[^\n]*", re.DOTALL)
_LITERAL = re.compile(r"'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`|\"(?:[^\"\\\n]|\\.)*\"")
_WORDS = re.compile(
    r"^\W*[A-Z][a-z]+(?:$|[ ,.:;…?!])|^\W*[A-Z]\w* [\w(]|[a-z]{2,} [a-z]+ [a-z]+|[a-z …][.…?!]$"
)
"""A literal that begins like a sentence, has three words in a row, or ends like a sentence."""
_ATTRIBUTE = re.compile(rf"['\"]?({'|'.join(_SHOWN)})['\"]?: (?P<quote>['`])(?P<words>.*?)(?P=quote)")
_SET_TEXT = re.compile(r"(?:textContent|\.title|\.placeholder) = (?P<quote>['`])(?P<words>.*?)(?P=quote)")
_PLACE = re.compile(r"\$\{(?:[^{}]|\{[^{}]*\})*\}")
_KNOWN = frozenset(
    (
        *("Escape", "Enter", "ArrowDown", "ArrowUp", "Tab", "Files", "P", "Edit", "Retry"),
        *("Delete", "Backspace"),
        *("Notification", "Parlour", "parlour."),
        *("Firefox", "Edge", "Opera", "Chrome", "Safari", "Android", "Windows", "ChromeOS", "Mac", "Linux"),
        *("Bearer ${this.signIn.token}", "noopener noreferrer nofollow"),
    )
)
"""Names of keys, programs and answers, and values that no one reads."""
_SENTENCES_OF_THE_GATEWAY = {"rows.js": {"May I use ${tool}?"}}
"""What the page recognises in the gateway's English, and does not show."""


class _Words(HTMLParser):
    """The literal words of a page: texts, and attributes that people see or hear."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in _SHOWN]

    def handle_data(self, data: str) -> None:
        self.found.append(data)


def literal_words(source: str, name: str) -> list[str]:
    """The literals of a module that look like words for people."""
    code = _COMMENT.sub("", source)
    found = [match.group("words") for match in [*_ATTRIBUTE.finditer(code), *_SET_TEXT.finditer(code)]]
    for match in _LITERAL.finditer(code):
        literal = match.group()[1:-1]
        before = code[max(0, match.start() - 60) : match.start()]
        if re.search(r"(?:class|new Error|console\.\w+|throw \w+|'Content-[\w-]+'|import|from)\W*$", before):
            continue
        if _WORDS.search(_PLACE.sub("x", literal).strip()):
            found.append(literal)
    known = _KNOWN | _SENTENCES_OF_THE_GATEWAY.get(name, set())
    plain = [(words, _PLACE.sub("", words)) for words in found]
    return [words for words, bare in plain if words not in known and re.search(r"[A-Za-z]{2}", bare)]


def test_no_module_has_words_that_are_not_from_the_table() -> None:
    found = {path.name: literal_words(path.read_text(encoding="utf-8"), path.name) for path in modules()}
    assert {name: words for name, words in found.items() if words} == {}


@pytest.mark.parametrize(
    "code",
    [
        "el('button', { 'aria-label': 'Close' }, icon('close'))",
        "status.tell('Not connected just now.')",
        "words.textContent = `${count} left`;",
        "el('span', {}, 'Copied')",
        "const text = `A note (${clock(seconds)}) is lost`;",
        "return on ? 'voice note of yours' : '';",
    ],
)
def test_the_search_for_words_finds_words(code: str) -> None:
    assert literal_words(code, "any.js") != []


def test_the_page_itself_has_only_words_from_the_table() -> None:
    parser = _Words()
    parser.feed((STATIC / "index.html").read_text(encoding="utf-8"))
    words = [re.sub(r"\{\{[\w.]+\}\}", "", one).strip() for one in parser.found]
    assert {one for one in words if re.search(r"[A-Za-z]", one)} == {"Parlour"}


def test_every_text_is_used_and_every_used_text_is_there() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    code = "\n".join(path.read_text(encoding="utf-8") for path in modules())
    in_page = set(re.findall(r"\{\{([a-z_]+(?:\.\w+)?)\}\}", page)) - {"lang", "dir", "texts"}
    called = set(re.findall(r"\bt\('([\w.]+)'", code))
    families = set(re.findall(r"\bt\((?:[^()]*\? '[\w.]+' : )?`([\w.]+)\$\{", code))
    assert in_page | called <= set(ENGLISH.texts)
    literal = {key for key in ENGLISH.texts if f"'{key}'" in code}
    family = {key for key in ENGLISH.texts if any(key.startswith(one) for one in families)}
    assert set(ENGLISH.texts) - in_page - literal - family - {NAME_KEY} == set()
    assert {key for key in called if key.startswith(IN_PAGE)} == set()
    assert all(any(key.startswith(one) for key in ENGLISH.texts) for one in families)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.tag)
def test_every_language_has_every_text_with_the_same_places(table: TextTable) -> None:
    assert set(table.texts) == set(ENGLISH.texts)
    for key, text in table.texts.items():
        assert places_of(key, text) == places_of(key, ENGLISH.texts[key]), key
        if not isinstance(text, str):
            assert "other" in text, key


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.tag)
def test_the_page_can_be_rendered_in_every_language(table: TextTable) -> None:
    template = (STATIC / "index.html").read_text(encoding="utf-8")
    page = render_index(template, table, TABLES, "0")
    assert page.startswith(f'<!doctype html>\n<html lang="{table.tag}" dir="ltr">')
    assert "{{" not in page
    assert page.count("<kbd>") == 6


def modules() -> list[Path]:
    return sorted(STATIC.glob("*.js"))
