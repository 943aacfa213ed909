"""What a sub-agent hands back."""

from __future__ import annotations

import pytest

from pipeline.playbooks.hand_back import read_hand_back

_WHOLE = """Some words.

**HAND_BACK**
**Summary:** Found it.
Twice.
- Artifact: line one
line two
Needs user input: None.
Suggested next action: Send it."""


def test_the_fields_are_read_over_several_lines_and_without_their_marks() -> None:
    found = read_hand_back(_WHOLE)
    assert found.summary == "Found it.\nTwice."
    assert found.artifact == "line one\nline two"
    assert (found.needs, found.next_action) == ("", "Send it.")
    assert found.result == "Found it.\nTwice.\n\nline one\nline two"


@pytest.mark.parametrize("nothing", ["none", "None.", "no", "N/A", "-", ""])
def test_words_for_nothing_are_nothing(nothing: str) -> None:
    assert read_hand_back(f"HAND_BACK\nSummary: x\nNeeds user input: {nothing}").needs == ""


def test_without_a_block_the_text_is_the_result_and_its_beginning_the_summary() -> None:
    found = read_hand_back("x" * 600)
    assert (len(found.summary), len(found.result)) == (500, 600)


def test_the_last_block_counts() -> None:
    text = "HAND_BACK\nSummary: form\n\nHAND BACK\nSummary: real"
    assert read_hand_back(text).result == "real"


def test_a_block_without_fields_keeps_the_words_before_it() -> None:
    assert read_hand_back("All is well.\nHAND_BACK\n").result == "All is well."


def test_fields_without_the_heading_count_if_there_is_a_summary() -> None:
    assert read_hand_back("Summary: a\nArtifact: b").result == "a\n\nb"
    assert read_hand_back("Artifact: b").result == "Artifact: b"
