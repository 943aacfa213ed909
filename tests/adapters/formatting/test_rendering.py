"""Every example and every odd string on every channel: within the platform's rules, and no word lost."""

# ruff: noqa: RUF001 - look-alike letters are what is tested

from __future__ import annotations

import html
import re
from urllib.parse import urlsplit

import pytest
from markdown_it import MarkdownIt

from adapters.formatting.discord import discord_parts
from adapters.formatting.html import TAGS, render_html
from adapters.formatting.layout import lay_out
from adapters.formatting.links import WEB
from adapters.formatting.markdown import parse
from adapters.formatting.plain import plain_lines, plain_text
from adapters.formatting.slack import slack_parts
from adapters.formatting.split import has_ink
from adapters.formatting.telegram import telegram_parts
from tests.adapters.formatting.examples import examples
from tests.adapters.formatting.odd import exfiltrations, odd_strings
from tests.adapters.formatting.readers import discord_reading, slack_reading, squeezed, without_marks
from tests.adapters.formatting.rules import (
    discord_problems,
    slack_problems,
    slack_text_problems,
    telegram_problems,
)
from tests.support.tables import each

EXAMPLES = examples()
ODD = odd_strings()
ALL = [*(markdown for _, markdown in EXAMPLES), *ODD]
_CHUNKS = [ALL[start : start + 50] for start in range(0, len(ALL), 50)]


def _reference(markdown: str, *schemes: str) -> str:
    """The visible words as every channel gets them."""
    text = plain_lines(lay_out(parse(markdown), transcript="", schemes=WEB | set(schemes)), addresses=False)
    return squeezed(text) if any(has_ink(line) for line in text.split("\n")) else "…"


def test_there_are_as_many_samples_as_were_promised() -> None:
    assert len(EXAMPLES) >= 300
    assert len({section for section, _ in EXAMPLES}) >= 25
    assert len(set(ODD)) >= 500
    assert len(set(exfiltrations())) >= 120


@each("chunk", _CHUNKS)
def test_telegram_accepts_every_sample_and_shows_its_words(chunk: list[str]) -> None:
    for markdown in chunk:
        parts = telegram_parts(markdown)
        for part in parts:
            assert telegram_problems(part.text, part.entities) == [], repr(markdown[:200])
            assert telegram_problems(part.plain, ()) == [], repr(markdown[:200])
        assert squeezed("\n".join(part.text for part in parts)) == _reference(markdown, "tg")


@each("chunk", _CHUNKS)
def test_slack_accepts_every_sample_and_shows_its_words(chunk: list[str]) -> None:
    for markdown in chunk:
        parts = slack_parts(markdown)
        for part in parts:
            assert slack_problems(part.sections) == [], repr(markdown[:200])
            assert slack_text_problems(part.plain) == [], repr(markdown[:200])
        reading = "\n".join(slack_reading(section) for part in parts for section in part.sections)
        assert without_marks(squeezed(reading)) == without_marks(_reference(markdown, "mailto")), repr(
            markdown
        )


@each("chunk", _CHUNKS)
def test_discord_accepts_every_sample_and_shows_its_words(chunk: list[str]) -> None:
    for markdown in chunk:
        parts = discord_parts(markdown)
        for part in parts:
            assert discord_problems(part.content) == [], repr(markdown[:200])
            assert len(part.plain) <= 2000
        reading = squeezed("\n".join(discord_reading(part.content) for part in parts))
        assert reading == _reference(markdown), repr(markdown)


@each("chunk", _CHUNKS)
def test_the_page_gets_only_tags_and_addresses_that_are_allowed(chunk: list[str]) -> None:
    for markdown in chunk:
        rendered = render_html(markdown)
        for tag in re.findall(r"<[^>]*>?", rendered):
            match = re.fullmatch(r"</?([a-z0-9]+)((?: [a-z]+=\"[^\"<>]*\")*)>", tag)
            assert match is not None, tag
            assert match[1] in TAGS
            names = re.findall(r" ([a-z]+)=", match[2])
            assert set(names) <= {"href", "rel", "target", "class", "start", "align"}
        for address in re.findall(r'href="([^"]*)"', rendered):
            assert re.match(r"https?://[^/]+\.|mailto:", html.unescape(address)), address
        assert rendered.count("<a ") == rendered.count('rel="noopener noreferrer nofollow"')


def test_no_word_of_an_example_is_lost_on_the_way_into_the_tree() -> None:
    judge = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    for _, markdown in EXAMPLES:
        expected = re.findall(r"\w+", html.unescape(re.sub(r"<[^>]*>", " ", judge.render(markdown))))
        shown = plain_text(markdown)
        assert [word for word in expected if word not in shown] == [], markdown


def test_joiners_and_marks_of_right_to_left_text_survive_everywhere() -> None:
    kept = "می\u200cخواهم 👨\u200d👩\u200d👧 a\u200fb क्\u200dष"
    assert telegram_parts(kept)[0].text == kept
    assert slack_parts(kept)[0].sections == (kept,)
    assert discord_parts(kept)[0].content == kept
    assert plain_text(kept) == kept
    assert render_html(kept) == f"<p>{kept}</p>"


@pytest.mark.parametrize("blank", ["", " \n\t", "\u200b\u200d", "\u3164", "\ufeff", "```\n```"])
def test_nothing_to_show_is_shown_as_an_ellipsis(blank: str) -> None:
    assert [(part.text, part.entities) for part in telegram_parts(blank)] == [("…", ())]
    assert [part.sections for part in slack_parts(blank)] == [("…",)]
    assert [part.content for part in discord_parts(blank)] == ["…"]


@each("markdown", exfiltrations())
def test_a_link_never_hides_where_it_leads(markdown: str) -> None:
    for part in telegram_parts(markdown):
        units = part.text.encode("utf-16-le")
        for entity in part.entities:
            label = units[entity["offset"] * 2 : (entity["offset"] + entity["length"]) * 2].decode(
                "utf-16-le"
            )
            assert _is_honest(label, str(entity.get("url", "")))
    for address, label in re.findall(r"<([^<>|]+)\|([^<>]+)>", slack_parts(markdown)[0].sections[0]):
        assert _is_honest(label, address)
    for label, address in re.findall(r"\[([^\]]+)\]\(<([^>]+)>\)", discord_parts(markdown)[0].content):
        assert _is_honest(label, address)


def _is_honest(label: str, address: str) -> bool:
    claims = "bank" in label or "://" in label
    return "@" not in urlsplit(address).netloc and (
        "evil.example" not in address or not claims or "evil.example" in label
    )
