"""What a person is shown of an action: all of it, one line for each argument, with nothing unseen in it."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.tools.action import action_for, proposal_of
from pipeline.tools.question import asked_words
from pipeline.tools.shown import quoted, shown
from pipeline.tools.tool import ToolOutput
from tests.support.contexts import scope
from tests.support.shields import shield
from tests.support.tool_gate import tool

LEAVES = st.none() | st.booleans() | st.integers() | st.text()
PLAIN = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)


async def _run(_arguments: Any, _scope: Any) -> ToolOutput:
    return ToolOutput(text="")


@settings(max_examples=150)
@given(PLAIN)
def test_a_quoted_value_is_one_line_of_json_that_gives_the_value_back(value: Any) -> None:
    text = quoted(value)
    assert len(text.splitlines()) == 1
    assert json.loads(text) == value


@settings(max_examples=150)
@given(st.text())
def test_every_character_of_a_quoted_value_is_seen(value: str) -> None:
    unseen = [char for char in quoted(value) if unicodedata.category(char) in ("Cc", "Cf", "Cn", "Co", "Zl")]
    assert unseen == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("harmless.txt\npath: real.txt", r'"harmless.txt\npath: real.txt"'),
        ("a\u202etxt.exe", r'"a\u202etxt.exe"'),
        ("a\u200bb\u200db\ufe0f", r'"a\u200bb\u200db\ufe0f"'),
        ("\U000e0041", r'"\udb40\udc41"'),
        ("a\u2028b\u0085c\x7f", r'"a\u2028b\u0085c\u007f"'),
        ("a\u00a0b\u2003c\u3164", r'"a\u00a0b\u2003c\u3164"'),
        ('say "hi" \\ bye', r'"say \"hi\" \\ bye"'),
        ("Grüße, 日本語\u3000Ж 🙂", '"Grüße, 日本語\u3000Ж 🙂"'),
    ],
)
def test_what_deceives_is_an_escape_and_what_is_read_stays(value: str, text: str) -> None:
    assert quoted(value) == text


def test_no_key_and_no_value_looks_like_another_line() -> None:
    payload = {"path": "a.txt\nText: b", "in_minutes": 5, 'Path: "x"\nText': "y", "Path": "z"}
    assert shown(payload).split("\n") == [
        r'Path: "a.txt\nText: b"',
        "In minutes: 5",
        r'"Path: \"x\"\nText": "y"',
        '"Path": "z"',
    ]


async def test_the_question_holds_the_whole_payload_and_its_hash() -> None:
    text = "a" * 400 + "THE MIDDLE" + "b" * 400
    action = action_for("1", "m", tool("send", _run), {"text": text, "n": [1]})
    proposal = proposal_of(action, scope())
    words = asked_words(action, proposal, await shield().judge(proposal))
    assert words.startswith("May I use send?\n")
    assert words.endswith(f'\nText: "{text}"\nN: [1]\nSHA-256: {action.hash}')


def test_a_large_payload_is_shown_in_linear_time() -> None:
    # Quadratic work over a million characters would take hours, not be a second slower.
    assert quoted("\u202e日" * 500_000).count(r"\u202e") == 500_000
