"""The page's files as text: nothing in them could turn words into markup, and nothing is missing."""

from __future__ import annotations

import re

from adapters.formatting.html import TAGS
from tests.end_to_end.page.fake_gateway import STATIC
from tests.end_to_end.page.hostile import HOSTILE


def test_the_source_has_no_way_to_inject_markup() -> None:
    banned = re.compile(
        r"\.(?:inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
        r"|importNode|adoptNode|cloneNode|setHTML|createContextualFragment|setAttribute\('style'|location\.(?:search|hash|href)"
    )
    sources = sorted(STATIC.glob("*.js"))
    assert len(sources) > 10
    for source in sources:
        text = source.read_text(encoding="utf-8")
        if source.name == "signin.js":
            # The one place that reads the address: a link's token, which it takes out of it.
            assert text.count("location.hash") == 1
            text = text.replace("location.hash", "")
        assert banned.search(text) is None, source.name
        assert ("DOMParser" in text) == (source.name == "finished.js"), source.name
        assert len(text.splitlines()) < 300, source.name
        assert text.startswith("/*"), f"{source.name} does not begin by saying what it is"
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert (
        re.search(r"\son\w+=|\sstyle=|<style|<script(?! (?:type=\"module\" )?src=\"/static/)", page) is None
    )
    assert re.search(r"(?:src|href)=\"(?!/static/|#)", page) is None


def test_the_page_builds_every_element_that_the_gateways_html_may_have() -> None:
    text = (STATIC / "finished.js").read_text(encoding="utf-8")
    assert {tag for tag in TAGS if re.search(rf"^  {tag}: ?", text, re.MULTILINE) is None} - {"a"} == set()
    assert re.search(r"^  a: link,$", text, re.MULTILINE)


def test_every_asset_that_the_page_names_is_there() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    named = re.findall(r"\"/static/([^\"]+)\"", page)
    assert [name for name in named if not (STATIC / name).is_file()] == []
    icons = set(re.findall(r"id=\"icon-([a-z]+)\"", page))
    used = set(re.findall(r"#icon-([a-z]+)", page))
    for source in STATIC.glob("*.js"):
        used |= set(re.findall(r"icon\('([a-z]+)'\)", source.read_text(encoding="utf-8")))
    assert used - icons == set()


def test_every_module_is_loaded_at_once() -> None:
    """A module that only another one names would wait for it: each level is one more round trip."""
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    preloaded = re.findall(r"<link rel=\"modulepreload\" href=\"/static/([\w-]+\.js)\">", page)
    assert sorted(preloaded) == sorted(imported_by("app.js") - {"app.js"})


def imported_by(name: str) -> set[str]:
    """The modules that a module needs, with itself."""
    found, open_ones = set[str](), [name]
    while open_ones:
        module = open_ones.pop()
        if module not in found:
            found.add(module)
            text = (STATIC / module).read_text(encoding="utf-8")
            open_ones += re.findall(r"^(?:import|export) [^;]*?'\./([\w-]+\.js)';", text, re.MULTILINE)
    return found


def test_the_page_weighs_little() -> None:
    assert sum(len(path.read_bytes()) for path in STATIC.iterdir()) <= 250_000


def test_the_hostile_corpus_is_not_thin() -> None:
    assert len(set(HOSTILE)) >= 60
