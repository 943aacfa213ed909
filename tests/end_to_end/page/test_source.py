"""The page's files as text: nothing in them could turn words into markup, and nothing is missing."""

from __future__ import annotations

import re

from adapters.formatting.html import TAGS
from adapters.web.page_bundle import bundled
from adapters.web.page_render import render_index
from adapters.web.text_tables import TextTable, packaged_tables
from tests.end_to_end.page.fake_gateway import STATIC
from tests.end_to_end.page.hostile import HOSTILE

OPENING_BYTES = 250_000
LATER_BYTES = 60_000
EDITOR_BYTES = 110_000
"""The workflow editor, which few people open."""
INSTALLED = {"icon-192.png", "icon-512.png", "icon-maskable.png", "sw.js"}
"""What the browser loads beside the page: to install it, and to show it without network."""
_AT_ONCE = re.compile(r"^(?:import|export)\b[^;]*?'\./([\w-]+\.js)';", re.MULTILINE)
_COMMENT = re.compile(r"/\*\*.*?\*/", re.DOTALL)
"""The types in it name modules, and load none."""
_LATER = re.compile(r"\bimport\('\./([\w-]+\.js)'\)|new URL\('([\w.-]+)', import\.meta\.url\)")


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
    # The texts are data, which a browser never runs; nothing in them can end the element (test_text_tables).
    page = _page().replace('<script type="application/json" id="texts">', "")
    assert (
        re.search(r"\son\w+=|\sstyle=|<style|<script(?! (?:type=\"module\" )?src=\"/static/)", page) is None
    )
    assert re.search(r"(?:src|href)=\"(?!/static/|#)", page) is None


def test_the_page_builds_every_element_that_the_gateways_html_may_have() -> None:
    text = (STATIC / "finished.js").read_text(encoding="utf-8")
    assert {tag for tag in TAGS if re.search(rf"^  {tag}: ?", text, re.MULTILINE) is None} - {"a"} == set()
    assert re.search(r"^  a: link,$", text, re.MULTILINE)


def test_every_asset_that_the_page_names_is_there() -> None:
    page = _page()
    named = re.findall(r"\"/static/([^\"]+)\"", page)
    assert [name for name in named if not (STATIC / name).is_file()] == []
    icons = set(re.findall(r"id=\"icon-([a-z]+)\"", page))
    used = set(re.findall(r"#icon-([a-z]+)", page))
    for source in STATIC.glob("*.js"):
        used |= set(re.findall(r"icon\('([a-z]+)'\)", source.read_text(encoding="utf-8")))
    assert used - icons == set()


def test_what_the_page_needs_at_once_is_one_file_for_each_script() -> None:
    """A module that came by itself would be one more request, and each level one more round trip."""
    files = bundled({path.name: path.read_bytes() for path in STATIC.iterdir()})
    scripts = {name: content.decode("utf-8") for name, content in files.items() if name.endswith(".js")}
    opening = re.findall(r"<script (?:type=\"module\" )?src=\"/static/([^\"]+)\">", _page())
    assert opening == ["theme.js", "app.js", "shell.js"]
    assert [name for name in opening if re.search(r"^import\b", scripts[name], re.MULTILINE)] == []
    panels = {"account.js", "chats.js", "panel.js", "editor-opening.js", "editor.js"}
    speech = {"talk.js", "reader.js", "recorder.js", "pcm-worklet.js"}
    assert set(scripts) == {*opening, *panels, *speech, "sw.js"}


def test_the_page_weighs_little() -> None:
    at_opening, later = opening_files(), later_files()
    assert at_opening | later | INSTALLED == {path.name for path in STATIC.iterdir()}
    written = max(len(_written(table)) for table in packaged_tables())
    assert weight(at_opening - {"index.html"}) + written <= OPENING_BYTES
    editor = {name for name in later if name.startswith("editor")}
    assert weight(later - editor) <= LATER_BYTES
    assert weight(editor) <= EDITOR_BYTES


def opening_files() -> set[str]:
    """The files that a browser loads when the page opens: the page, and what it and its modules need."""
    page = _page()
    return {"index.html"} | loaded_with(set(re.findall(r"\"/static/([^\"]+)\"", page)))


def later_files() -> set[str]:
    """The files that are loaded when a part of the page is first used."""
    found, before = opening_files(), set[str]()
    while found != before:
        before = set(found)
        for name in before:
            named = (module or file for module, file in _LATER.findall(_text(name)))
            found |= loaded_with(set(named))
    return found - opening_files()


def loaded_with(names: set[str]) -> set[str]:
    """The files with all modules that they need at once."""
    found, open_ones = set[str](), set(names)
    while open_ones:
        name = open_ones.pop()
        if name not in found:
            found.add(name)
            open_ones |= set(_AT_ONCE.findall(_text(name)))
    return found


def weight(names: set[str]) -> int:
    """Bytes, before any compression."""
    return sum((STATIC / name).stat().st_size for name in names)


def _page() -> str:
    """index.html as it is in the package, without a language."""
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    return page.replace("/static/manifest.{{lang}}.webmanifest", "/static/manifest.webmanifest")


def _written(table: TextTable) -> bytes:
    """index.html as a browser gets it."""
    template = (STATIC / "index.html").read_text(encoding="utf-8")
    return render_index(template, table, packaged_tables(), "0123456789").encode("utf-8")


def _text(name: str) -> str:
    """The code of a module; empty for any other file."""
    return _COMMENT.sub("", (STATIC / name).read_text(encoding="utf-8")) if name.endswith(".js") else ""


def test_the_hostile_corpus_is_not_thin() -> None:
    assert len(set(HOSTILE)) >= 60
