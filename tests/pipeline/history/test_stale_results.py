"""Old tool results in one line: of the right age, of the right kind, and only in what is sent."""

from __future__ import annotations

import json

from pipeline.domain.chat import ChatMessage
from pipeline.domain.conversation import PastTurn
from pipeline.history.content_type import guess_content_type
from pipeline.history.stale_results import as_sent, brief, one_line, sent, with_brief
from tests.pipeline.history.talks import plain_turn, tool_turn
from tests.support.tables import each

LONG = "a line of a result\n" * 40
LINE = "[Summary: Returned 760 bytes (40 lines) of plain text]"


def _results(*turns: PastTurn) -> list[str]:
    """What is sent of them before a new message."""
    shown = [as_sent(turns, index, 4) for index in range(len(turns))]
    return [message.content for message in sent(shown) if message.role == "tool"]


def test_a_result_is_whole_for_four_more_messages_and_then_a_line() -> None:
    turns = (tool_turn(1, LONG), *(plain_turn(number) for number in range(2, 5)))
    assert _results(*turns) == [LONG]
    assert _results(*turns, plain_turn(5)) == [LINE]


def test_only_the_results_change_and_the_call_stays_with_its_result() -> None:
    whole = tool_turn(1, LONG)
    short = brief(whole)
    assert [message.role for message in short.messages] == [message.role for message in whole.messages]
    assert short.messages[:2] == whole.messages[:2]
    assert short.messages[2].tool_call_id == whole.messages[1].tool_calls[0].id
    assert short.tokens < whole.tokens


def test_the_turn_itself_keeps_its_result() -> None:
    whole = with_brief(tool_turn(1, LONG))
    brief(whole)
    assert whole.messages[2].content == LONG
    assert whole == tool_turn(1, LONG)


def test_what_was_shortened_before_is_left_as_it_is() -> None:
    short = brief(tool_turn(1, LONG))
    assert brief(short) is short
    assert one_line(one_line(LONG)) == one_line(LONG)


def test_the_brief_form_is_worked_out_once() -> None:
    turn = with_brief(tool_turn(1, LONG))
    assert brief(turn) is brief(turn)


def test_a_turn_without_tools_is_the_same_object() -> None:
    turn = plain_turn(1)
    assert brief(turn) is turn


def test_a_result_that_is_shorter_than_its_line_stays() -> None:
    assert one_line("22 degrees, sunny") == "22 degrees, sunny"


def test_bytes_are_bytes_and_lines_are_lines() -> None:
    assert one_line("ü" * 100 + "\n" + "ü" * 100) == "[Summary: Returned 401 bytes (2 lines) of plain text]"


def test_half_a_surrogate_pair_is_counted_and_does_not_fail() -> None:
    assert one_line("\ud83d" * 100) == "[Summary: Returned 300 bytes (1 lines) of plain text]"


def test_what_the_assistant_says_twice_in_a_row_is_sent_once() -> None:
    said = ChatMessage(role="assistant", content="Done.")
    turn = PastTurn(id=1, messages=(ChatMessage(role="user", content="go"), said, said))
    assert [message.content for message in sent((turn, turn))] == ["go", "Done.", "go", "Done."]


def test_a_call_is_no_repetition_of_the_words_before_it() -> None:
    turn = tool_turn(1, LONG, words="answer 1")
    assert len(sent((turn,))) == 4


@each(
    "text, kind",
    [
        (json.dumps({"a": [1, 2]}), "JSON"),
        ("[1, 2, 3]", "JSON"),
        ('{"cut": [1, 2, ', "JSON"),
        ("<!DOCTYPE html>\n<html><body>hi</body></html>", "HTML"),
        ("<div class='x'>hi</div>", "HTML"),
        ("<?xml version='1.0'?><a/>", "XML"),
        ("<feed xmlns='x'><entry/></feed>", "XML"),
        ("# Title\n\nSome words and a [link](https://example.org).", "Markdown"),
        ("# A script's title\n\n```python\nimport os\n```\n", "Markdown"),
        ("- one\n- two\n- three", "Markdown"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "Markdown"),
        ("name,age\nAda,36\nAlan,41\n", "CSV"),
        ("name\tage\nAda\t36\n", "CSV"),
        ("import os\n\n\ndef main() -> None:\n    pass\n", "Python source code"),
        ("package main\n\nfunc main() {}\n", "Go source code"),
        ("use std::io;\n\npub fn main() {}\n", "Rust source code"),
        ("public class A {\n}\n", "Java source code"),
        ("interface A {\n  b: string\n}\n", "TypeScript source code"),
        ("const a = 1;\nfunction b() {}\n", "JavaScript source code"),
        ("#include <stdio.h>\nint main(void) {}\n", "C source code"),
        ("#!/usr/bin/env bash\nls\n", "shell source code"),
        ("SELECT name FROM people;", "SQL source code"),
        ("body {\n  color: red;\n}\n", "CSS source code"),
        ("Traceback (most recent call last):\n  File", "an error"),
        ("FileNotFoundError: no such file", "an error"),
        ("Error: no such tool", "an error"),
        ("It was a dark and stormy night, and it rained.", "plain text"),
        ("errors are human", "plain text"),
        ("", "plain text"),
    ],
)
def test_a_text_is_recognised_by_its_form(text: str, kind: str) -> None:
    assert guess_content_type(text) == kind
