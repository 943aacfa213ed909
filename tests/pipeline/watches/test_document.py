"""HEARTBEAT.md and the words for what is watched: read by rules, and refused where they are not clear."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from pipeline.domain.errors import InvalidInput
from pipeline.watches.conditions import WatchCondition, shown_interval
from pipeline.watches.document import MAX_LINES, read_document
from pipeline.watches.words import Intervals, condition_of

NOW = datetime(2027, 3, 24, 12, 0, tzinfo=ZoneInfo("Europe/Berlin"))
USUAL = Intervals(usual_s=1_800.0)
TEXT = """\
# Heartbeat
Be brief.

## Garden
<!-- - [ ] not this -->
- [ ] find out when to plant tomatoes
- [x] buy seeds
- `0 9 * * 1-5` — sum up what is new
- watch https://example.org/news every 2 hours — tell me about road works
- watch file own/list.txt
- watch the sky -- tell me
* watch tool current_time {"zone": "UTC"} every day -- tell me
"""


def test_a_document_has_instructions_projects_tasks_times_and_watches() -> None:
    found = read_document(TEXT, NOW, USUAL)
    assert found.instructions.startswith("# Heartbeat\nBe brief.")
    assert found.projects == ("Garden",)
    assert found.tasks == ("find out when to plant tomatoes",)
    assert [(one.condition.kind, one.text) for one in found.watches] == [
        ("time", "sum up what is new"),
        ("page", "tell me about road works"),
        ("file", "Say what is new."),
        ("tool", "tell me"),
    ]
    assert [one.condition.every_s for one in found.watches] == [0.0, 7_200.0, 60.0, 86_400.0]
    assert found.watches[3].condition.arguments == '{"zone": "UTC"}'
    (problem,) = found.problems
    assert problem.startswith("line 11: I do not understand when “the sky” is")


def test_a_line_has_the_same_id_as_long_as_it_is_the_same() -> None:
    first, later = read_document(TEXT, NOW, USUAL), read_document(f"New.\n{TEXT}", NOW, USUAL)
    assert [one.id for one in first.watches] == [one.id for one in later.watches]
    assert len({one.id for one in first.watches}) == 4


def test_a_document_has_only_so_many_watches() -> None:
    lines = "\n".join(f"- watch file own/{number}.txt" for number in range(MAX_LINES + 2))
    found = read_document(lines, NOW, USUAL)
    assert len(found.watches) == MAX_LINES
    assert [one.rpartition(": ")[2] for one in found.problems] == ["there are more than 200 of them"] * 2


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("https://example.org", "the page https://example.org, every 30 minutes"),
        ("page https://example.org every hour", "the page https://example.org, every 1 hour"),
        (
            "feed https://example.org/a.xml every 10 minutes",
            "the feed https://example.org/a.xml, every 10 minutes",
        ),
        ("file own/a b.txt", "the file own/a b.txt, every 1 minute"),
        ("memory green tea every 3 days", "what is remembered about “green tea”, every 3 days"),
        ("every weekday at 9", "every Monday to Friday at 09:00 (Europe/Berlin)"),
    ],
)
def test_words_name_a_condition(words: str, shown: str) -> None:
    found = condition_of(words, NOW, USUAL)
    assert found.shown == shown
    assert WatchCondition.from_plain(found.plain()) == found


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("", "I do not understand"),
        ("the sky", "I do not understand"),
        ("file", "say which file"),
        ("feed ftp://example.org", "begins with https"),
        ("https://example.org and more", "I do not understand"),
        ("https://example.org every minute", "every 5 minutes or less often"),
        ("tool about [1]", "a JSON object"),
    ],
)
def test_what_is_not_clear_is_refused_in_words(words: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        condition_of(words, NOW, USUAL)


@pytest.mark.parametrize(("seconds", "words"), [(60, "1 minute"), (5_400, "90 minutes"), (172_800, "2 days")])
def test_an_interval_is_shown_in_words(seconds: float, words: str) -> None:
    assert shown_interval(seconds) == words
