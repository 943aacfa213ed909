"""The model's Markdown in a terminal: styles of our own, and nothing of the model's that acts on it."""

from __future__ import annotations

import pytest

from adapters.console.markdown import finished_blocks, terminal_text
from tests.support.tables import each


@each(
    "markdown, shown",
    [
        ("plain", "plain"),
        ("a **bold** and *slanted* word", "a \x1b[1mbold\x1b[22m and \x1b[3mslanted\x1b[23m word"),
        ("run `ls -l` now", "run \x1b[36mls -l\x1b[39m now"),
        ("## Title\n\ntext", "\x1b[1mTitle\x1b[22m\n\ntext"),
        ("```py\nx = 1\n\ny\n```", "    \x1b[36mx = 1\x1b[39m\n\n    \x1b[36my\x1b[39m"),
        ("- one\n- two", "• one\n• two"),
        ("3. three\n4. four", "3. three\n4. four"),
        ("> said", "│ said"),
        ("see [the page](https://example.org/x)", "see the page (https://example.org/x)"),
        ("see <https://example.org/>", "see https://example.org/"),
        ("", ""),
    ],
)
def test_markdown_becomes_styles(markdown: str, shown: str) -> None:
    assert terminal_text(markdown) == shown


@pytest.mark.parametrize("wrapped", ["{}", "`{}`", "```\n{}\n```", "**{}**", "[x](https://a.example/{})"])
def test_what_acts_on_a_terminal_is_shown_as_an_escape(wrapped: str) -> None:
    shown = terminal_text(wrapped.format("a\x1b[2Jb\x9bc"))
    for ours in ("\x1b[1m", "\x1b[22m", "\x1b[36m", "\x1b[39m"):
        shown = shown.replace(ours, "")
    assert "\x1b" not in shown
    assert "\x9b" not in shown


@pytest.mark.parametrize(
    ("written", "finished"),
    [
        ("one para", ""),
        ("one\n\n", ""),
        ("one\n\nt", "one\n\n"),
        ("one\n\ntwo\n\nthree", "one\n\ntwo\n\n"),
        ("```\na\n\nb\n", ""),
        ("```\na\n\nb\n```\n\nafter", "```\na\n\nb\n```\n\n"),
        ("- a\n\n    more of a\n\n- b", "- a\n\n    more of a\n\n"),
    ],
)
def test_a_block_is_finished_when_the_next_begins_at_the_margin(written: str, finished: str) -> None:
    assert written[: finished_blocks(written)] == finished
