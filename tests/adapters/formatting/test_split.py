"""Cutting long texts: every part fits, nothing is lost, fences stay closed, and it stays quick."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.formatting.discord import discord_parts
from adapters.formatting.graphemes import cluster_boundary
from adapters.formatting.html import render_html
from adapters.formatting.layout import MICROPHONE
from adapters.formatting.plain import plain_text
from adapters.formatting.slack import slack_parts
from adapters.formatting.telegram import telegram_parts
from tests.adapters.formatting.readers import discord_reading, slack_reading, squeezed
from tests.adapters.formatting.rules import discord_problems, size, slack_problems, telegram_problems
from tests.support.tables import each

_WORDS = st.lists(
    st.sampled_from(
        [
            *(
                "word",
                "Sentence.",
                "**bold**",
                "`code`",
                "[link](https://example.com/a_b)",
                "\n",
                "\n\n",
                "- ",
                "1. ",
            ),
            *(
                "```py\n",
                "\n```\n",
                "> ",
                "# ",
                "|a|b|\n|-|-|\n|1|2|\n",
                "x" * 300,
                "👨\u200d👩\u200d👧",
                "é",
                "_",
                "*",
            ),
            *("&<>", "@everyone", "https://example.com/x_y", "`", "~~s~~", "\\", "中文字。", "    "),
        ]
    ),
    max_size=120,
)
_MARKDOWN = _WORDS.map(" ".join) | _WORDS.map("".join)


def test_4096_units_are_one_telegram_message_and_4097_are_two() -> None:
    assert [part.text for part in telegram_parts("x" * 4096)] == ["x" * 4096]
    assert [len(part.text) for part in telegram_parts("x" * 4097)] == [4096, 1]
    assert [size(part.text) for part in telegram_parts("😀" * 2048)] == [4096]
    assert [size(part.text) for part in telegram_parts("😀" * 2049)] == [4096, 2]


def test_2000_characters_of_discord_count_their_fence_and_their_escapes() -> None:
    assert [len(part.content) for part in discord_parts("x" * 2000)] == [2000]
    assert len(discord_parts("x" * 2001)) == 2
    fence = "```py\n" + "x" * (2000 - len("```py\n\n```")) + "\n```"
    assert [part.content for part in discord_parts(fence)] == [fence]
    assert len(discord_parts(fence.replace("\n```", "x\n```"))) == 2
    assert len(discord_parts(r"\_" * 1000)) == 1
    assert len(discord_parts(r"\_" * 1001)) == 2


def test_a_fence_longer_than_a_part_is_closed_and_opened_again_with_its_language() -> None:
    lines = [f"    print({number})" for number in range(500)]
    parts = discord_parts("Before.\n\n```python\n" + "\n".join(lines) + "\n```\n\nAfter.")
    assert len(parts) > 3
    for part in parts[1:-1]:
        assert part.content.startswith("```python\n")
        assert part.content.endswith("\n```")
    shown = [line for part in parts for line in part.content.split("\n") if line.strip().startswith("print")]
    assert shown == lines
    languages = {entity.get("language") for part in telegram_parts("```python\n" + "\n".join(lines) + "\n```")
                 for entity in part.entities}  # fmt: skip
    assert languages == {"python"}


def test_a_link_longer_than_a_part_is_a_link_in_every_part_or_written_out() -> None:
    label = "label " * 900
    parts = telegram_parts(f"[{label}](https://example.com/)")
    assert len(parts) == 2
    assert all(part.entities[0]["url"] == "https://example.com/" for part in parts)
    address = "https://example.com/" + "x" * 5000
    shown = "".join(part.text for part in telegram_parts(f"[a]({address})"))
    assert shown == f"a ({address})".replace(" ", "")[:1] + shown[1:]
    assert address in shown
    near = "https://example.com/" + "x" * 970
    assert discord_parts(f"[a]({near})", limit=400)[0].content.startswith("a (https")


def test_a_table_wider_than_a_part_becomes_lines_that_are_cut() -> None:
    table = "|name|text|\n|-|-|\n|first|" + "long words " * 600 + "|\n|second|short|"
    for part in discord_parts(table):
        assert discord_problems(part.content) == []
    assert "- **name**: second\n  **text**: short" in discord_parts(table)[-1].content


def test_parts_begin_at_blocks_and_a_heading_stays_with_its_text() -> None:
    paragraph = "A sentence of some length. " * 50
    parts = telegram_parts(
        f"{paragraph}\n\n## Heading\n\n{paragraph}\n\n{paragraph}\n\n## Next\n\n{paragraph}"
    )
    assert [part.text.split("\n")[0][:10] for part in parts] == ["A sentence", "A sentence"]
    assert not any(part.text.endswith(("Heading", "Next")) for part in parts)
    posts = discord_parts(f"{paragraph}\n\n## Heading\n\n{paragraph}")
    assert [post.content[:10] for post in posts] == ["A sentence", "## Heading"]


def test_a_long_paragraph_is_cut_after_a_sentence_else_at_a_space() -> None:
    for part in telegram_parts("One more sentence of the kind. " * 400)[:-1]:
        assert part.text.endswith(".")
    for part in telegram_parts("word " * 2000):
        assert set(part.text.split(" ")) == {"word"}
    assert telegram_parts("句子结束。" * 1500)[0].text.endswith("。")


@pytest.mark.parametrize(
    "cluster", ["👨\u200d👩\u200d👧\u200d👦", "🇩🇪", "👍🏽", "e\u0301\u0323", "क्\u200dषि", "각", "1️⃣"]
)
def test_what_reads_as_one_character_is_not_cut(cluster: str) -> None:
    whole = "x" + cluster * 3000
    assert all(
        cluster_boundary(whole, position) in {0, *range(1, len(whole), len(cluster))}
        for position in range(1, 300)
    )
    for part in telegram_parts(whole):
        assert part.text.removeprefix("x").replace(cluster, "") == ""


def test_a_transcript_is_quoted_above_the_first_part_and_is_never_markup() -> None:
    heard = "**not bold** [x](https://evil.example)\n# same"
    [telegram] = telegram_parts("Answer", transcript=heard)
    assert telegram.text == f"{MICROPHONE} {heard}\n\nAnswer"
    assert [entity["type"] for entity in telegram.entities] == ["blockquote"]
    [discord] = discord_parts("Answer", transcript="*a*\nb")
    assert discord.content == f"> {MICROPHONE} \\*a\\*\n> b\n\nAnswer"
    [slack] = slack_parts("Answer", transcript="<!channel> a")
    assert slack.sections == (f"> {MICROPHONE} &lt;!channel&gt; a\n\nAnswer",)
    assert plain_text("Answer", transcript="a") == f"> {MICROPHONE} a\n\nAnswer"


def test_a_list_of_many_links_keeps_to_one_hundred_entities() -> None:
    parts = telegram_parts("\n".join(f"- [a{number}](https://example.com/{number})" for number in range(350)))
    assert all(len(part.entities) <= 100 for part in parts)
    assert sum(len(part.entities) for part in parts) == 350


def test_a_limit_that_nothing_fits_into_is_refused() -> None:
    with pytest.raises(ValueError, match="limit: 20"):
        telegram_parts("x", limit=20)


@settings(max_examples=150, deadline=None)
@given(_MARKDOWN, st.integers(min_value=128, max_value=700))
def test_every_part_fits_and_together_they_are_the_whole(markdown: str, limit: int) -> None:
    telegram = telegram_parts(markdown, limit=limit)
    discord = discord_parts(markdown, limit=limit)
    slack = slack_parts(markdown, limit=limit)
    for part in telegram:
        assert telegram_problems(part.text, part.entities, limit=limit) == []
    for post in discord:
        assert discord_problems(post.content, limit=limit) == []
    for message in slack:
        assert slack_problems(message.sections) == []
        assert sum(map(size, message.sections)) <= limit
    whole = squeezed("\n".join(part.text for part in telegram_parts(markdown)))
    assert squeezed("\n".join(part.text for part in telegram)) == whole
    assert squeezed("\n".join(discord_reading(post.content) for post in discord)) == squeezed(
        "\n".join(discord_reading(post.content) for post in discord_parts(markdown))
    )
    assert re.sub(
        r"[*_~`]", "", squeezed("\n".join(slack_reading(s) for m in slack for s in m.sections))
    ) == (
        re.sub(
            r"[*_~`]",
            "",
            squeezed("\n".join(slack_reading(s) for m in slack_parts(markdown) for s in m.sections)),
        )
    )


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(), max_size=300) | _MARKDOWN, st.text(max_size=50))
def test_no_text_is_refused_and_rendering_it_again_gives_the_same(markdown: str, heard: str) -> None:
    for render in (telegram_parts, slack_parts, discord_parts):
        parts = render(markdown, transcript=heard)
        assert parts
        assert render(markdown, transcript=heard) == parts
    assert render_html(markdown) == render_html(markdown)


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(), max_size=300), st.integers(min_value=128, max_value=200))
def test_parts_that_fit_are_not_cut_again(text: str, limit: int) -> None:
    for part in telegram_parts(text, limit=limit):
        [again] = telegram_parts(
            re.sub(r"([^\w\s])", r"\\\1", part.text) if part.text.isascii() else "x", limit=limit
        )
        assert size(again.text) <= limit


_ANSWER = (
    "Some **bold** `code`, see [this](https://example.com/a_b).\n\n- one\n- two\n\n```py\nx = 1\n```\n\n"
)


@each("render", [telegram_parts, slack_parts, discord_parts, render_html])
@each(
    "markdown",
    [
        _ANSWER * (25_000 // len(_ANSWER)),
        "word and " * 2_750,
        "x" * 25_000,
        "![" * 12_500,
        "*a **b " * 3_500,
        "> " * 12_500,
        "[a](" * 6_250,
        "|" + "a|" * 500 + "\n|" + "-|" * 500 + "\n" + "|b\n" * 150,
        "https://a.b/" + ")" * 25_000,
        "`a`**b**" * 3_000,
        "&<>" * 10_000,
        "a" + "\u0301" * 31_250,
    ],
)
def test_the_time_grows_with_the_length(render: object, markdown: str) -> None:
    assert callable(render)
    started = time.process_time()
    render(markdown)
    spent = time.process_time() - started
    # Many times what a loaded machine was measured to need; anything quadratic takes several seconds.
    assert spent < 1.5
