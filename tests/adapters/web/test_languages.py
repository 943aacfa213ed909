"""The page in the language of the person: which one a request gets, and tables that a folder adds."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import pytest

from adapters.web.language_choice import COOKIE, accepted_language
from adapters.web.outgoing import command_list
from adapters.web.page_render import direction_of
from adapters.web.settings import PACKAGED_PAGE
from adapters.web.text_tables import AddedTables, added_tables, packaged_tables
from pipeline.domain.command_types import Language
from pipeline.domain.commands import COMMANDS
from tests.adapters.web.harness import TOKEN, WebHarness, serving
from tests.support.tables import each

_FORMS = "its forms must be some of zero, one, two, few, many, other, and always other"
_OBJECT = 'must be a text, or an object such as {"one": "…", "other": "…"}'
_CAPS = "words in square brackets"
_TAGS = ("en", "de", "fr", "es", "pt-BR")


@each(
    "header, tag",
    [
        ("de", "de"),
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("nl, fr;q=0.5, es;q=0.7", "es"),
        ("ES", "es"),
        ("pt", "pt-BR"),
        ("pt-PT, de;q=0.1", "pt-BR"),
        ("de;q=0, fr;q=0.1", "fr"),
        ("nl-NL,nl", "en"),
        ("*", "en"),
        ("", "en"),
        ("de;q=x, ;;;, -, q=1, \x00", "en"),
        (",".join(["nl"] * 5000) + ",de", "en"),
    ],
)
def test_a_browsers_languages_choose_the_pages(header: str, tag: str) -> None:
    assert accepted_language(header, _TAGS) == tag


def test_a_language_that_is_written_from_right_to_left_has_that_direction() -> None:
    assert [direction_of(tag) for tag in ("ar", "he-IL", "fa", "de", "pt-BR")] == ["rtl"] * 3 + ["ltr"] * 2


@pytest.fixture
def page(tmp_path: Path) -> WebHarness:
    """The adapter with a small page in place of the real one."""
    harness = WebHarness(tmp_path)
    (harness.static / "index.html").write_text('<html lang="{{lang}}"><h1>{{settings.title}}</h1>')
    (harness.static / "app.js").write_text("app")
    (harness.static / "manifest.webmanifest").write_text('{"name": "Parlour"}')
    (harness.static / "sw.js").write_text("{{version}} {{files}}")
    return WebHarness(tmp_path)


async def test_the_choice_counts_before_the_browsers_language(page: WebHarness) -> None:
    async with serving(page) as browser:
        for headers, lang, title in (
            ({}, "en", "Settings"),
            ({"Accept-Language": "fr-CA"}, "fr", "Réglages"),
            ({"Accept-Language": "fr", "Cookie": f"{COOKIE}=de"}, "de", "Einstellungen"),
            ({"Accept-Language": "fr", "Cookie": f"{COOKIE}=xx"}, "fr", "Réglages"),
            ({"Accept-Language": "fr", "Cookie": f'{COOKIE}="><script>'}, "fr", "Réglages"),
        ):
            async with browser.client.get("/", headers=headers) as response:
                assert await response.text() == f'<html lang="{lang}"><h1>{title}</h1>'
                assert response.headers["Cache-Control"] == "no-cache"
                assert {"Accept-Language", "Cookie"} <= set(response.headers["Vary"].split(", "))


async def test_each_language_has_its_own_tag(page: WebHarness) -> None:
    async with serving(page) as browser:
        async with browser.client.get("/", headers={"Accept-Language": "de"}) as german:
            tag = german.headers["ETag"]
        for language, status in (("de", 304), ("en", 200)):
            headers = {"Accept-Language": language, "If-None-Match": tag}
            async with browser.client.get("/", headers=headers) as response:
                assert response.status == status


async def test_a_files_name_with_its_version_means_that_content_for_ever(page: WebHarness) -> None:
    async with serving(page) as browser:
        async with browser.client.get("/sw.js") as worker:
            version, *files = (await worker.text()).split()
            assert worker.headers["Cache-Control"] == "no-cache"
        assert files == ["app.js"]
        async with browser.client.get(f"/static/{version}/app.js") as response:
            assert await response.text() == "app"
            assert response.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        for name in (f"{version[::-1]}x/app.js", f"{version}/none.js", f"{version}/index.html"):
            async with browser.client.get(f"/static/{name}") as missing:
                assert missing.status == 404


async def test_the_manifest_is_there_in_each_language(page: WebHarness) -> None:
    async with serving(page) as browser, browser.client.get("/static/manifest.de.webmanifest") as response:
        assert response.content_type == "application/manifest+json"
        assert json.loads(await response.text()) == {
            "name": "Parlour",
            "lang": "de",
            "dir": "ltr",
            "description": "Sprich mit deinem eigenen Bot, geschrieben oder gesprochen.",
        }


async def test_the_commands_are_described_in_the_language_of_the_page(tmp_path: Path) -> None:
    async with serving(WebHarness(tmp_path)) as browser:
        wanted: tuple[tuple[str | None, Language], ...] = (
            ("de", "de"),
            ("fr-CA", "fr"),
            ("pt", "en"),
            (None, "en"),
        )
        for language, shown in wanted:
            _, frames = await browser.open(chat=None, language=language)
            described = [one["description"] for one in frames[0]["commands"]]
            assert described == [command.description[shown] for command in COMMANDS]
        page = await browser.connect()
        await page.say(type="hello", protocol=1, token=TOKEN, chat=None, language=7)
        (refused,) = await page.hear_until("problem")
        assert (refused["code"], refused["message"]) == ("bad_frame", "language: expected a string")
    assert command_list() == command_list("en")


# -- tables of a folder ---------------------------------------------------------------------------


def added(folder: Path, **files: object) -> AddedTables:
    """What the folder gives with these files; a text is written as it is."""
    for name, content in files.items():
        words = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{name.replace('_', '-')}.json").write_text(words, encoding="utf-8")
    return added_tables(folder)


def test_a_file_adds_a_language_by_its_own_name_and_english_fills_its_gaps(tmp_path: Path) -> None:
    texts = {"language": "Português", "save": "Guardar", "chats.count": {"other": "{count} conversas"}}
    found = added(tmp_path, pt_BR=texts)
    (table,) = found.tables
    assert (table.tag, table.name, found.mistakes) == ("pt-BR", "Português", ())
    assert (table.texts["save"], table.texts["cancel"]) == ("Guardar", "Cancel")
    (missing,) = found.missing
    assert missing.startswith("pt-BR.json: shown in English, because they are missing: not_connected, ")
    assert " save," not in missing


def test_a_complete_file_has_no_mistakes(tmp_path: Path) -> None:
    german = next(table for table in packaged_tables() if table.tag == "de")
    found = added(tmp_path, nl=dict(german.texts))
    assert (found.mistakes, found.missing) == ((), ())


@pytest.mark.parametrize(
    ("key", "text", "mistake"),
    [
        ("chats.tilte", "x", "chats.tilte: the page has no text with this key; remove it"),
        ("save", "", "save: must be a text; it is shown in English"),
        ("save", 7, "save: must be a text; it is shown in English"),
        ("save", {"other": "x"}, "save: must be a text; it is shown in English"),
        ("save", "\ud800", "save: contains half a character (a lone surrogate); it is shown in English"),
        ("save", "x" * 1001, "save: longer than 1,000 characters; it is shown in English"),
        ("save", "Guardar {x}", "save: must contain no place in braces, not {x}; it is shown in English"),
        (
            "files.too_large",
            "{file} é maior que {tamanho}.",
            "files.too_large: must contain {file}, {size}, not {file}, {tamanho}; it is shown in English",
        ),
        (
            "chats.count",
            {"one": "{count} conversa"},
            f"chats.count: {_FORMS}; it is shown in English",
        ),
        (
            "chats.count",
            {"other": "{count} conversas", "ones": "{count}"},
            f"chats.count: {_FORMS}; it is shown in English",
        ),
        (
            "chats.count",
            7,
            f"chats.count: {_OBJECT}; it is shown in English",
        ),
        (
            "page.hint_push",
            "Espaço",
            f"page.hint_push: must contain 1 {_CAPS}, not 0 {_CAPS}; it is shown in English",
        ),
    ],
)
def test_a_mistake_is_named_and_english_is_shown(
    tmp_path: Path, key: str, text: object, mistake: str
) -> None:
    found = added(tmp_path, pt={key: text})
    assert found.mistakes == (f"pt.json: {mistake}",)
    english = packaged_tables()[0].texts
    assert found.tables[0].texts == english
    assert found.tables[0].name == "pt"


def test_a_form_for_one_may_write_the_number_as_a_word(tmp_path: Path) -> None:
    found = added(tmp_path, pt={"chats.count": {"one": "uma conversa", "other": "{count} conversas"}})
    assert found.mistakes == ()


@pytest.mark.parametrize(
    ("name", "content", "mistake"),
    [
        ("pt", "{", "pt.json: not JSON: line 1, column 2: "),
        ("pt", "[1]", "pt.json: not one object with texts by key"),
        ("pt", '{"save": "a", "save": "b"}', "pt.json: save is in it twice"),
        ("pt", '{"save": "' + "x" * 200_000 + '"}', "pt.json: larger than 200,000 bytes"),
        ("pt", "[" * 100_000, "pt.json: "),
        ("de", "{}", "de.json: the page has this language already"),
        ("pt_12", "{}", "pt-12.json: the name must be a language tag, such as pt.json or pt-BR.json"),
        ("portugues", "{}", "portugues.json: the name must be a language tag, such as pt.json or pt-BR.json"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, name: str, content: str, mistake: str) -> None:
    found = added(tmp_path, **{name: content}, nl={"save": "Bewaren"})
    assert [table.tag for table in found.tables] == ["nl"]
    assert len(found.mistakes) == 1
    assert found.mistakes[0].startswith(mistake)
    assert found.mistakes[0].endswith("the file is not used") or "language tag" in found.mistakes[0]


def test_a_file_that_is_not_utf8_and_a_folder_that_is_not_there_are_named(tmp_path: Path) -> None:
    (tmp_path / "pt.json").write_bytes(b'{"save": "\xff"}')
    assert added_tables(tmp_path).mistakes == ("pt.json: not UTF-8; the file is not used",)
    (tmp_path / "pt.json").unlink()
    (tmp_path / "pt.json").mkdir()
    assert added_tables(tmp_path).mistakes == ("pt.json: not a file; the file is not used",)
    (mistake,) = added_tables(tmp_path / "none").mistakes
    assert mistake == f"channels.web.texts: there is no folder {tmp_path / 'none'}; create it"


async def test_a_text_of_a_file_is_shown_as_text_and_never_as_markup(tmp_path: Path) -> None:
    hostile = '</script><script>alert("1")</script>&amp;<!--'
    texts = dict.fromkeys(("language", "save", "settings.title", "page.description"), hostile)
    (table,) = added(tmp_path, pt=texts).tables
    harness = WebHarness(tmp_path, static_dir=PACKAGED_PAGE, added_tables=(table,))
    async with (
        serving(harness) as browser,
        browser.client.get("/", headers={"Accept-Language": "pt"}) as response,
    ):
        page = await response.text()
    plain, _, block = page.partition('<script type="application/json" id="texts">')
    block, _, after = block.partition("</script>")
    assert "alert" not in after
    assert hostile not in plain
    assert hostile in unescape(plain)
    found = json.loads(block)
    assert found["texts"]["save"] == hostile
    assert ["pt", hostile] in found["languages"]
