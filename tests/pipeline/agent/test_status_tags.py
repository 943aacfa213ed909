"""Wrappers: parsed however they are written, never shown, and nothing in code fences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.agent.status_tags import MAX_NOTE_CHARS, VisibleStream, declared
from tests.support.tables import each

DONE = "<AGENT_DONE><KEY_RESULT>It is 42.</KEY_RESULT></AGENT_DONE>"
BLOCKED = (
    "<AGENT_BLOCKED><BLOCKER_REASON>No key.</BLOCKER_REASON>"
    "<UNBLOCK_REQUIREMENTS>Send me the key.</UNBLOCK_REQUIREMENTS></AGENT_BLOCKED>"
)
CONTINUING = "<AGENT_CONTINUE><STATUS_REPORT>Half is done.</STATUS_REPORT></AGENT_CONTINUE>"


@each(
    "text, status, visible",
    [
        ("Hello.", "in_progress", "Hello."),
        (f"Hello.\n{DONE}", "done", "Hello."),
        (DONE, "done", "It is 42."),
        ("<AGENT_DONE></AGENT_DONE>", "done", "Done."),
        ("<AGENT_DONE>\n\n  All set.\nmore\n</AGENT_DONE>", "done", "All set."),
        (f"I tried.\r\n\r\n{BLOCKED}\r\n", "blocked", "I tried.\n\nNo key.\n\nSend me the key."),
        ("<AGENT_BLOCKED></AGENT_BLOCKED>", "blocked", "Blocked."),
        ("<AGENT_BLOCKED>no network</AGENT_BLOCKED>", "blocked", "no network"),
        (CONTINUING, "continue", "Half is done."),
        ("<AGENT_CONTINUE><STATUS_MESSAGE>Soon.</STATUS_MESSAGE></AGENT_CONTINUE>", "continue", "Soon."),
        ("<AGENT_CONTINUE></AGENT_CONTINUE>", "continue", "Continuing."),
        ("hi <agent_done><key_result>low</key_result></agent_done>", "done", "hi"),
        ("Cut off. <AGENT_DONE><KEY_RESULT>half a resu", "done", "Cut off."),
        ("<AGENT_DONE><KEY_RESULT>half a resu", "done", "half a resu"),
        ("Stray </AGENT_DONE> tag", "in_progress", "Stray  tag"),
        (f"{DONE} and after", "done", "and after"),
    ],
)
def test_what_a_message_declares_and_what_is_seen_of_it(text: str, status: str, visible: str) -> None:
    found = declared(text)
    assert (found.status, found.visible) == (status, visible)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (DONE + CONTINUING + BLOCKED, "blocked"),
        (CONTINUING + DONE, "done"),
        (CONTINUING + CONTINUING, "continue"),
    ],
)
def test_blocked_wins_over_done_and_done_over_continue(text: str, status: str) -> None:
    assert declared(text).status == status


@pytest.mark.parametrize("fence", ["```", "~~~~", "   ```xml"])
def test_a_wrapper_in_fenced_code_is_only_text(fence: str) -> None:
    closing = fence.strip().rstrip("xml")
    text = f"Write this:\n{fence}\n{DONE}\n{closing}\nthat is all"
    found = declared(text)
    assert found.status == "in_progress"
    assert DONE in found.visible
    assert declared(f"{text} {BLOCKED}").status == "blocked"


def test_nested_wrappers_are_read_from_the_outside() -> None:
    found = declared(f"<AGENT_DONE>before {BLOCKED} after</AGENT_DONE>")
    assert found.status == "done"
    assert "AGENT" not in found.visible


def test_a_note_is_one_short_line() -> None:
    note = declared(
        f"<AGENT_CONTINUE><STATUS_REPORT>{'word ' * 100}\nx</STATUS_REPORT></AGENT_CONTINUE>"
    ).note
    assert "\n" not in note
    assert len(note) == MAX_NOTE_CHARS


SAMPLES = [
    f"Hello there.\n{DONE}",
    f"a < b and <b>bold</b> {BLOCKED} end",
    f"```\n{DONE}\n```\ntext {CONTINUING}",
    "no tags, 1 < 2 <",
    "<agent_done>x",
    "x </KEY_RESULT> y",
]


@pytest.mark.parametrize("text", SAMPLES)
def test_no_part_of_a_wrapper_is_ever_streamed_however_the_text_is_cut(text: str) -> None:
    whole = VisibleStream()
    expected = whole.feed(text) + whole.finish()
    for cut in range(len(text) + 1):
        stream = VisibleStream()
        shown = stream.feed(text[:cut]) + stream.feed(text[cut:]) + stream.finish()
        assert shown == expected
    letters = VisibleStream()
    assert "".join(letters.feed(letter) for letter in text) + letters.finish() == expected
    assert declared(text).prose.startswith(expected.strip())


@given(st.text(alphabet="<>/AGENT_DONEagent \n`", max_size=60))
def test_streaming_and_reading_agree_on_anything(text: str) -> None:
    stream = VisibleStream()
    shown = "".join(stream.feed(letter) for letter in text) + stream.finish()
    assert declared(text).prose.startswith(shown.strip())
