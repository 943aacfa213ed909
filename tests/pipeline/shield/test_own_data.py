"""What a conversation has read of a person's own does not leave in a search or an address without a question.

Covers: pipeline/shield/provenance.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pipeline.runtime.scope import TurnScope
from pipeline.tools.registry import FixedGroup
from pipeline.tools.tool import ToolOutput, tool_schema
from tests.support.contexts import scope
from tests.support.tool_gate import Person, call, gate, group, propose, tool

_LETTER = "Dear Sir, the account is DE89370400440532013000 and the code is zx81-4711-qq."


@pytest.mark.parametrize(
    "query",
    [
        "DE89370400440532013000",
        "what is ZX81-4711-QQ?",
        "zx81%2D4711%2Dqq",
        "%5A%58%38%31%2D%34%37%31%31%2D%71%71",
        "Dear sir the account",
        "dear-sir--the-account is overdrawn",
    ],
)
async def test_a_person_is_asked_before_their_own_data_leaves_in_a_search(query: str) -> None:
    assert await _asked_about_search(query) == 1


@pytest.mark.parametrize(
    "query", ["how to write dear sir", "what is an account code", "museums on the coast"]
)
async def test_a_search_with_single_words_of_own_data_runs_without_a_question(query: str) -> None:
    assert await _asked_about_search(query) == 0


async def test_own_data_does_not_leave_to_a_host_that_was_allowed_for_the_conversation() -> None:
    person = Person("for_conversation")
    one = gate(_tools(), person=person)
    read = call("read_file", {"path": "own/a"})
    pages = [call("fetch_page", {"url": f"https://a.example/{end}"}, call_id=end) for end in ("1", "2")]
    await propose(one, read, *pages, scope=scope())
    assert len(person.asked) == 1
    person.answer = "refused"
    sent = call("fetch_page", {"url": "https://a.example/?d=zx81-4711-qq"}, call_id="3")
    (result,) = await propose(one, sent, scope=scope())
    assert (result.success, len(person.asked)) == (False, 2)


async def _asked_about_search(query: str) -> int:
    """How often a person is asked if a conversation has read a letter and then searches."""
    person = Person("refused")
    one = gate(_tools(), person=person)
    read = call("read_file", {"path": "own/a"})
    await propose(one, read, call("search_web", {"text": query}, call_id="2"), scope=scope())
    return len(person.asked)


async def _ran(_arguments: Mapping[str, Any], _scope: TurnScope) -> ToolOutput:
    return ToolOutput(text=_LETTER)


def _tools() -> FixedGroup:
    """Tools of which each returns the letter."""
    text = {"type": "string"}
    return group(
        tool("read_file", _ran, schema=tool_schema({"path": text}), reads_only=True),
        tool("fetch_page", _ran, schema=tool_schema({"url": text})),
        tool("search_web", _ran, reads_only=True),
    )
