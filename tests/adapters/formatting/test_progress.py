"""Every rendering comes to its end, and what cannot be formatted is shown as it was written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapters.formatting.discord import DiscordText, discord_parts
from adapters.formatting.fallback import RenderingTooSlow, plain_parts, rendered, within
from adapters.formatting.html import render_html
from adapters.formatting.markdown import MAX_PARSED
from adapters.formatting.rows import Row, Span
from adapters.formatting.slack import SlackText, slack_parts
from adapters.formatting.split import LEAST_LIMIT, CannotSplit, split
from adapters.formatting.telegram import TelegramText, telegram_parts
from tests.adapters.formatting.rules import discord_problems, size, slack_problems, telegram_problems
from tests.support.tables import each

_PREFIXES = (
    "",
    "# ",
    "###### ",
    "- ",
    "1234567890. ",
    "> ",
    "> - # ",
    "```python\n",
    "|a|b|\n|-|-|\n|c|",
    "* - + ",
)
_UNITS = (
    *(
        "a*b*",
        "a**b**",
        "a~~b~~",
        "-[b](https://a.test)",
        "***~~[x](https://a.test/y)~~***",
        "`c`d",
        "***a***b",
    ),
    *("[b](https://a.test/" + "y" * length + ")" for length in (60, 100, 120, 900)),
    *(
        "&<>",
        "*_~`|",
        "@everyone ",
        "😀",
        "👨\u200d👩\u200d👧",
        "e\u0301\u0301",
        "中",
        "x" * 70,
        "word ",
        "Sentence. ",
    ),
    *(
        "\n",
        "\n\n",
        "\n- ",
        "\n# ",
        "\n> ",
        "\n```\n",
        "|",
        "\\",
        "https://a.test/x_y ",
        "\u200b",
        "\u3164",
        "\ufffd",
    ),
)
_MARKDOWN = st.builds(
    lambda prefix, units, times: prefix + "".join(units) * times,
    st.sampled_from(_PREFIXES),
    st.lists(st.sampled_from(_UNITS), max_size=8),
    st.integers(min_value=1, max_value=60),
)
_LIMITS = st.integers(min_value=LEAST_LIMIT, max_value=160) | st.integers(
    min_value=LEAST_LIMIT, max_value=4096
)


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextmanager
def _errors() -> Iterator[list[str]]:
    """What the fallback logs meanwhile."""
    handler = _Kept()
    logger = logging.getLogger("adapters.formatting.fallback")
    logger.addHandler(handler)
    try:
        yield handler.lines
    finally:
        logger.removeHandler(handler)


@settings(max_examples=60, deadline=None)
@given(_MARKDOWN, _LIMITS)
@example("# " + "a*b*" * 30, 4096)
@example("# " + "-[b](https://a.test)" * 30, 4096)
@example("# " + "a~~b~~" * 60, 4096)
@example("- " + "a~~b~~" * 60, 128)
@example("> " + "a~~b~~" * 60, 128)
@example("***~~[x](https://a.test)~~***", 128)
@example("[" + "b" * 70 + "](https://a.test/" + "y" * 90 + ")", 128)
def test_every_text_is_formatted_in_parts_that_fit_at_every_limit(markdown: str, limit: int) -> None:
    with _errors() as errors:
        telegram = telegram_parts(markdown, limit=limit)
        discord = discord_parts(markdown, limit=limit)
        slack = slack_parts(markdown, limit=limit)
    assert errors == []
    for part in telegram:
        assert telegram_problems(part.text, part.entities, limit=limit) == []
    for post in discord:
        assert discord_problems(post.content, limit=limit) == []
    for message in slack:
        assert slack_problems(message.sections) == []
        assert sum(map(size, message.sections)) <= limit


class _Unbounded:
    """A scale by which nothing ever fits, though each span does: what a fault in a channel's scale may be."""

    def joint(self, _before: Row | None, _row: Row) -> int:
        return 0

    def row(self, _row: Row) -> int:
        return 1_000_000

    def prefix(self, _row: Row) -> int:
        return 0

    def span(self, span: Span, _row: Row) -> int:
        return len(span.text)

    def close(self, _row: Row, /) -> int:
        return 0


@pytest.mark.parametrize("spans", [(Span("words " * 100),), (Span("a", ("bold",), target="https://a.test"),)])
def test_a_scale_that_contradicts_itself_ends_in_an_error_and_not_never(spans: tuple[Span, ...]) -> None:
    with pytest.raises(CannotSplit):
        split([Row(spans), Row(spans)], limit=200, scale=_Unbounded())


def test_a_rendering_that_fails_gives_what_is_in_its_place() -> None:
    def fails() -> str:
        raise RecursionError

    with _errors() as errors:
        assert rendered(fails, lambda: "the words") == "the words"
    assert len(errors) == 1


def test_a_rendering_that_never_ends_is_ended_by_its_budget() -> None:
    def endless() -> str:
        while True:
            pass

    with _errors() as errors:
        assert rendered(endless, lambda: "the words", budget_s=0.02) == "the words"
    assert len(errors) == 1
    # The next one has its own budget, and what runs outside of one has none.
    assert rendered(lambda: "formatted", endless, budget_s=0.02) == "formatted"
    assert sum(range(2_000_000)) > 0


def test_a_budget_within_a_budget_does_not_lift_the_outer_one() -> None:
    def endless() -> None:
        with within(1_000.0):
            while True:
                pass

    with pytest.raises(RenderingTooSlow), within(0.02):
        endless()


@each("text", ["x" * 9_000, "a b\n" * 900, "&" * 900, "\n\n\n", "", "@everyone `" * 300, "😀" * 999])
@each("limit", [128, 2_000])
def test_plain_parts_hold_every_character_and_fit(text: str, limit: int) -> None:
    parts = plain_parts(text, limit=limit, write=lambda words: words.replace("&", "&amp;"))
    assert "".join("".join(parts).split()) == "".join(text.replace("&", "&amp;").split())
    assert all(0 < size(part) <= limit for part in parts)


_Render = Callable[[str], Sequence[TelegramText | DiscordText | SlackText] | str]


@pytest.mark.parametrize("render", [telegram_parts, render_html])
@pytest.mark.parametrize(
    "markdown",
    [
        "> " * 30 + "a\n" + "b\n" * (MAX_PARSED // 2),
        "[a]: https://example.com/" + "x" * 900 + "\n\n" + "[a]\n\n" * (MAX_PARSED // 5),
    ],
    ids=["deep quotes of many lines", "one address named many times"],
)
def test_what_costs_far_more_than_its_length_is_shown_as_it_is_written(
    render: _Render, markdown: str
) -> None:
    shown = render(markdown)
    assert len(shown if isinstance(shown, str) else repr(shown)) < 12 * len(markdown)


@pytest.mark.parametrize("word", ["a", "a-", "a.", "1.1.1.", "\u0327\u0301", "\u3002a"], ids=ascii)
def test_the_words_of_a_link_are_compared_with_its_host_within_the_budget(word: str) -> None:
    markdown = f"[{word * (60_000 // len(word))}](https://a.test)"
    with _errors() as errors:
        assert telegram_parts(markdown)
    assert errors == []
