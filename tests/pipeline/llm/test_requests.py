"""What people's words ask for, read by rules: the eval's prompts, and what is no request."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.judging import NOW
from evals.prompts import Prompt, prompts
from pipeline.llm.request_facts import page_asked, time_asked
from pipeline.llm.request_files import file_changed, file_shown, notes_shown
from pipeline.llm.request_reminders import note, reminder
from pipeline.llm.request_words import PreparedMessage, Request, said
from pipeline.llm.requests import read_request
from pipeline.tools.moments import moment_of
from pipeline.tools.tool import ToolFailed
from tests.support.tables import each


@each("prompt", prompts())
def test_a_prompt_of_the_eval_asks_for_its_tool_with_its_arguments(prompt: Prompt) -> None:
    found = read_request(prompt.words)
    assert (found.tool if found else None) == prompt.tool
    if found is None:
        return
    wanted = dict(prompt.arguments)
    due = wanted.pop("due", "")
    if due:
        assert f"{moment_of(str(found.arguments['when']), NOW):%Y-%m-%dT%H:%M}" == due
    for name, words in wanted.items():
        assert words in str(found.arguments[name])


@each(
    "words",
    [
        "",
        "What did I ask you to remind me of?",
        "Can you remind me what RAM is?",
        "Do you remember my name?",
        "What is a reminder?",
        "Note taking apps?",
        "Should I note that down?",
        "How do I open a txt file?",
        "What is Node.js?",
        "What time is the meeting?",
        "how many files can a folder hold?",
        "Write a poem to poem.txt",
        "What are good notes?",
        "Ich erinnere mich an den Sommer.",
        "Was sind Notizen?",
        "Je me souviens de toi.",
        "¿Qué es una nota musical?",
        "x" * 10_000,
    ],
)
def test_talk_asks_for_nothing(words: str) -> None:
    assert read_request(words) is None


@each("words, tool, arguments", [
        ("Kannst du mich morgen um 8 an die Milch erinnern?", "remind_me",
         {"text": "die Milch", "when": "morgen um 8"}),
        ("Peux-tu me rappeler demain à 9h d'appeler Paul ?", "remind_me",
         {"text": "appeler Paul", "when": "demain à 9h"}),
        ("I have a meeting, remind me in 10 minutes", "remind_me",
         {"text": "I have a meeting", "when": "in 10 minutes"}),
        ("remind me to breathe", "remind_me", {"text": "breathe"}),
        ("Cancel the reminder about the rent", "cancel_reminder", {"id": "the rent"}),
        ("My time zone is Europe/Paris", "set_time_zone", {"zone": "Europe/Paris"}),
        ("Meine Zeitzone ist Berlin", "set_time_zone", {"zone": "Berlin"}),
        ("wie spät ist es in Tokio?", "current_time", {"zone": "Tokio"}),
        ("what is 15% of 80?", "calculate", {"expression": "15 / 100 * 80"}),
        ("was ist 3,5 mal 2", "calculate", {"expression": "3.5 * 2"}),
        ("Open https://example.org/a.", "fetch_page", {"url": "https://example.org/a"}),
        ("Please add milk to my list todo.txt", "append_file", {"path": "todo.txt", "text": "milk"}),
        ("Delete my note bike", "delete_note", {"title": "bike"}),
        ("Which files mention Berlin?", "search_files", {"text": "Berlin"}),
    ])  # fmt: skip
def test_a_request_is_read_with_the_persons_own_words(
    words: str, tool: str, arguments: dict[str, Any]
) -> None:
    found = read_request(words)
    assert found is not None
    assert (found.tool, found.arguments) == (tool, arguments)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["remind me", "every", "at 9", "to", "add", "a.txt", "«", "»", "note", ":", "?", "morgen", "à 8h",
             "in", "2", "Minuten", "what is", "17", "*", "%", "notes", "my", "\n", "zeig", "dateien",
             "a.", "¿"]
        ),
        max_size=30,
    ).map(" ".join)
)  # fmt: skip
def test_whatever_is_said_is_read_without_an_error_and_every_argument_is_said(words: str) -> None:
    found = read_request(words)
    for value in found.arguments.values() if found and found.tool != "calculate" else ():
        said = words.casefold()
        assert all(part in said for part in str(value).casefold().split() if part.isalpha())


@each(
    "words, due",
    [
        ("tomorrow at 8 am", "2026-11-23T08:00"),
        ("in 2 hours and 15 minutes", "2026-11-22T12:15"),
        ("in einer halben Stunde", "2026-11-22T10:30"),
        ("um halb neun", "2026-11-23T08:30"),
        ("heute Abend um 8", "2026-11-22T20:00"),
        ("übermorgen um 7", "2026-11-24T07:00"),
        ("am 3. Dezember um 9 Uhr", "2026-12-03T09:00"),
        ("am 3.12. um 9 Uhr", "2026-12-03T09:00"),
        ("sunday at 9", "2026-11-29T09:00"),
        ("next monday", "2026-11-23T09:00"),
        ("vendredi à 18h30", "2026-11-27T18:30"),
        ("le 1er janvier à midi", "2027-01-01T12:00"),
        ("dans une heure et demie", "2026-11-22T11:30"),
        ("mañana por la mañana", "2026-11-23T08:00"),
        ("pasado mañana a las 7 y media", "2026-11-24T07:30"),
        ("el 3 de diciembre a las 9", "2026-12-03T09:00"),
        ("2026-12-01 14:30", "2026-12-01T14:30"),
        ("at 9", "2026-11-23T09:00"),
        ("at 11", "2026-11-22T11:00"),
        ("in two months", "2027-01-22T09:00"),
    ],
)
def test_a_time_is_read_as_people_say_it(words: str, due: str) -> None:
    assert f"{moment_of(words, NOW):%Y-%m-%dT%H:%M}" == due


@each(
    "words, why",
    [
        ("every day at 9", "is for once"),
        ("jeden Morgen um 8", "is for once"),
        ("tous les lundis à 10h", "is for once"),
        ("cada semana", "is for once"),
        ("heute um 8", "that time is over"),
        ("domani alle 8", "do not understand"),
        ("tomorrow at 8 with Bob", "do not understand"),
        ("3/12 at 9", "two dates"),
        ("am 31.2. um 9", "no such day"),
        ("at 25", "do not understand"),
        ("soon", "do not understand"),
        ("x" * 500, "do not understand"),
    ],
)
def test_a_time_that_is_not_read_whole_is_refused_in_words(words: str, why: str) -> None:
    with pytest.raises(ToolFailed, match=why):
        moment_of(words, NOW)


def test_a_clock_time_keeps_its_meaning_over_the_change_of_the_clocks() -> None:
    before = datetime(2026, 3, 28, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    assert moment_of("tomorrow at 8 am", before).isoformat() == "2026-03-29T08:00:00+02:00"
    assert moment_of("in 24 hours", before).isoformat() == "2026-03-29T13:00:00+02:00"


@each(
    "rule, begin, again, end, tool",
    [
        (time_asked, "what time is it", " now", "x", None),
        (file_changed, "añade x", " al", "x", None),
        (file_changed, "erstelle a.txt mit ", ".", "x", "write_file"),
        (file_shown, "my files ", "!", "x", None),
        (file_shown, "show ", "a.", "x", None),
        (page_asked, "open ", "a.", "1", None),
        (page_asked, "open ", "a-", "1", None),
        (page_asked, "open ", "1.1.", "x", None),
        (notes_shown, "what did i", " reported you", "x", None),
        (reminder, "erinnere mich", " daran", "x", "remind_me"),
        (note, "note: ", "'", "x", "write_note"),
    ],
)
def test_a_rule_reads_a_hostile_message_in_linear_time(
    rule: Callable[[PreparedMessage], Request | None], begin: str, again: str, end: str, tool: str | None
) -> None:
    # Quadratic work over a hundred thousand characters would take minutes, not be a second slower.
    words = begin + again * (100_000 // len(again)) + end
    found = rule(said(words))
    assert (found.tool if found else None) == tool
