"""How each channel shows the parts of Markdown."""

from __future__ import annotations

import itertools
import re

import pytest

from adapters.formatting.discord import discord_parts
from adapters.formatting.html import render_html
from adapters.formatting.slack import slack_parts
from adapters.formatting.telegram import telegram_parts
from tests.adapters.formatting.rules import discord_problems, slack_problems, telegram_problems
from tests.support.tables import each

_Z = "\u200b"


@each(
    "markdown, slack, discord",
    [
        ("**b** *i* ~~s~~ `c`", "*b* _i_ ~s~ `c`", "**b** *i* ~~s~~ `c`"),
        ("***b***", "_*b*_", "***b***"),
        ("**a***b*", f"*a*{_Z}_b_", f"**a**{_Z}*b*"),
        ("a**b**c", f"a{_Z}*b*{_Z}c", "a**b**c"),
        ("# t", "*t*", "# t"),
        ("##### t **b**", "*t b*", "**t b**"),
        ("> a\n>\n> b", "> a\n> \n> b", "> a\n> \n> b"),
        ("- a\n  1. b\n- c", "• a\n  1. b\n• c", "- a\n  1. b\n- c"),
        ("```py\na<b\n```", "```\na&lt;b\n```", "```py\na<b\n```"),
        ("````\n```\n````", f"```\n`{_Z}`{_Z}`\n```", f"```\n`{_Z}`{_Z}`\n```"),
        ("``a`b``", "a`b", "`` a`b ``"),
        ("[a](https://e.com/x_y)", "<https://e.com/x_y|a>", "[a](<https://e.com/x_y>)"),
        ("https://e.com/x_y", "<https://e.com/x_y>", "<https://e.com/x_y>"),
        ("[a|b](https://e.com)", "<https://e.com|a¦b>", "[a\\|b](<https://e.com>)"),
        ("![cat](https://e.com/c.png)", "<https://e.com/c.png|cat>", "[cat](<https://e.com/c.png>)"),
        ("<!channel> &amp;", "&lt;!channel&gt; &amp;", "\\<!channel> &"),
        ("@everyone <@1>", "@everyone &lt;@1&gt;", f"@{_Z}everyone \\<@{_Z}1>"),
        ("\\# a", "# a", "\\# a"),
        ("\\> a", f"{_Z}&gt; a", "\\> a"),
        ("2026\\. a", "2026. a", "2026\\. a"),
        ("\\*a\\* a_b", f"*{_Z}a* a_b", "\\*a\\* a\\_b"),
        (":smile: 10:30:45", ":smile: 10:30:45", "\\:smile: 10\\:30:45"),
        ("a\n\n---\n\nb", "a\n\n———\n\nb", "a\n\n———\n\nb"),
    ],
)
def test_slack_and_discord_write_markup_that_shows_what_was_meant(
    markdown: str, slack: str, discord: str
) -> None:
    assert [part.sections for part in slack_parts(markdown)] == [(slack,)]
    assert [part.content for part in discord_parts(markdown)] == [discord]


@each("name", ["@everyone", "@here"])
@each("mark", ["*", "**", "~~", "`", "_", "***"])
def test_no_way_to_mark_its_letters_calls_everybody_on_discord(name: str, mark: str) -> None:
    for start, end in itertools.combinations(range(len(name) + 1), 2):
        markdown = f"{name[:start]}{mark}{name[start:end]}{mark}{name[end:]}"
        for marked in (
            markdown,
            f"*{markdown}*",
            f"[{markdown}](https://a.test)",
            f"{mark}@{mark}{name[1:]}",
        ):
            for post in (*discord_parts(marked), *discord_parts("x" * 120 + marked, limit=128)):
                bare = re.sub(r"[*_~`\\]", "", re.sub(r"`[^`]*`", "code", post.content))
                assert name not in bare, marked
                assert name not in post.plain, marked


def test_a_mail_address_is_as_it_was_written() -> None:
    [post] = discord_parts("a@example.com, b@here.example")
    assert post.content == f"a@example.com, b@{_Z}here.example"


def test_telegram_gets_entities_in_utf16_units() -> None:
    [part] = telegram_parts("😀 **b *bi*** `c` [l](https://e.com) ~~s~~\n\n> q\n\n```py\nx\n```")
    assert part.text == "😀 b bi c l s\n\nq\n\nx"
    assert part.entities == (
        {"type": "bold", "offset": 3, "length": 4},
        {"type": "italic", "offset": 5, "length": 2},
        {"type": "code", "offset": 8, "length": 1},
        {"type": "text_link", "offset": 10, "length": 1, "url": "https://e.com"},
        {"type": "strikethrough", "offset": 12, "length": 1},
        {"type": "blockquote", "offset": 15, "length": 1},
        {"type": "pre", "offset": 18, "length": 1, "language": "py"},
    )
    assert part.plain == "😀 b bi c l (https://e.com) s\n\n> q\n\nx"


def test_a_table_is_aligned_by_the_width_of_its_characters() -> None:
    [part] = telegram_parts("|名前|n|\n|-|-|\n|a|**1**|")
    assert part.text == "名前 | n\n-----+--\na    | 1"
    assert [entity["type"] for entity in part.entities] == ["pre"]


def test_the_page_gets_tags_for_what_it_can_show() -> None:
    assert render_html("# *t*\n\n<b>x</b> ![i](https://e.com/i.png)") == (
        "<h1><em>t</em></h1>\n<p>&lt;b&gt;x&lt;/b&gt; "
        '<a href="https://e.com/i.png" target="_blank" rel="noopener noreferrer nofollow">i</a></p>'
    )
    aligned = render_html("| a | b | c |\n|:-:|--:|---|\n| 1 | 2 | 3 |")
    assert '<th align="center">a</th><th align="right">b</th><th>c</th>' in aligned
    assert '<td align="center">1</td><td align="right">2</td><td>3</td>' in aligned
    assert render_html("3. a\n4. b") == '<ol start="3"><li>a</li><li>b</li></ol>'
    assert render_html('```js" onload=x\n<\n```') == '<pre><code class="language-js">&lt;</code></pre>'
    assert render_html("[a](javascript:x)") == "<p>a (javascript:x)</p>"
    assert render_html("|a|\n|-|\n|b|") == (
        "<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>b</td></tr></tbody></table>"
    )
    assert render_html("") == ""


def test_nesting_beyond_what_the_parser_follows_keeps_the_words() -> None:
    assert "deep" in telegram_parts(">" * 500 + " deep")[0].text
    assert "deep" in render_html("- " * 500 + "deep")


@each(
    "text, entities, problem",
    [
        ("", [], "empty"),
        ("x" * 4097, [], "4097"),
        ("ab", [("bold", 0, 0)], "length 0"),
        ("ab", [("bold", 1, 2)], "behind"),
        ("😀", [("bold", 1, 1)], "surrogate"),
        ("a b", [("bold", 1, 1)], "whitespace"),
        ("abc", [("bold", 0, 2), ("italic", 1, 2)], "overlap"),
        ("abc", [("pre", 0, 3), ("bold", 1, 1)], "may not be inside"),
        ("abc", [("blockquote", 0, 3), ("blockquote", 1, 1)], "inside another"),
        ("abc", [("spoiler", 0, 3)], "unknown"),
    ],
)
def test_the_rules_of_telegram_find_what_is_wrong(
    text: str, entities: list[tuple[str, int, int]], problem: str
) -> None:
    found = telegram_problems(
        text, [{"type": kind, "offset": offset, "length": length} for kind, offset, length in entities]
    )
    assert any(problem in line for line in found), found


@pytest.mark.parametrize(
    "text", ["", "<!channel>", "a & b", "a > b", "<@U1>", "<javascript:x|y>", "```x", "x" * 3001]
)
def test_the_rules_of_slack_find_what_is_wrong(text: str) -> None:
    assert slack_problems([text])
    assert slack_problems(["x" * 3000] * 5)
    assert slack_problems(["x"] * 51)


@each(
    "content",
    ["", " ", "x" * 2001, "```x", "@everyone", "a <@123>", "<@&1>", "[a](https://e.com)", "<#1>", "<:a:1>"],
)
def test_the_rules_of_discord_find_what_is_wrong(content: str) -> None:
    assert discord_problems(content)
