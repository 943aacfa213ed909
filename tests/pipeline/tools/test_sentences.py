"""What people read about a call while it is made: a sentence, not the name of a tool and its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.scheduling.reminders import ReminderScheduler
from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import ActionStarted
from pipeline.domain.messages import InboundMessage, ReminderDue, SessionCommand
from pipeline.domain.tool_words import tool_words
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.scope import TurnScope
from pipeline.tools.files import files_group
from pipeline.tools.notes import notes_group
from pipeline.tools.schedule import ScheduleGroup
from pipeline.tools.sentences import SENTENCES, sentence
from pipeline.tools.system import system_group
from pipeline.tools.tool import ToolGroup, ToolOutput
from pipeline.tools.web import WebGroup
from pipeline.tools.web_client import GuardedWeb
from pipeline.tools.workspace import WorkspaceFolder
from pipeline.tools.zones import TimeZones
from tests.support.contexts import Watched, scope
from tests.support.jobs import RunnerHarness
from tests.support.tool_gate import call, gate, group, propose, tool


async def test_every_built_in_tool_has_a_sentence_that_ends_in_one_of_its_arguments(tmp_path: Path) -> None:
    clock = ManualClock()
    zones = TimeZones(WorkspaceFolder(tmp_path, clock), clock)
    store = MemoryStore()
    scheduler = ReminderScheduler(
        jobs=RunnerHarness(store, clock).runner,
        store=store,
        clock=clock,
        wake=lambda _thread: None,
        still_allowed=_anybody,
    )
    groups: list[ToolGroup] = [
        files_group(tmp_path),
        notes_group(tmp_path),
        system_group(clock, zones, version="1"),
        WebGroup(GuardedWeb(clock), clock),
        ScheduleGroup(scheduler, clock, zones),
    ]
    names = []
    for one in groups:
        for built_in in await one.tools(scope()):
            names.append(built_in.name)
            words, argument = SENTENCES[built_in.name]
            assert words[0].isupper()
            assert not argument or argument in built_in.definition.parameters["properties"], built_in.name
    assert len(names) > 10


async def _run(_arguments: Mapping[str, Any], _scope: TurnScope) -> ToolOutput:
    return ToolOutput(text="tea")


async def _anybody(_due: ReminderDue | InboundMessage | SessionCommand) -> bool:
    return True


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("write_file", "write file"),
        ("mcp__the_weather__is_fine", "is fine (the weather)"),
        ("mcp__x", "mcp x"),
        ("mcp____x", "mcp x"),
        ("_", "_"),
        ("", ""),
    ],
)
def test_the_name_of_a_tool_is_split_into_words(name: str, words: str) -> None:
    assert tool_words(name) == words


async def test_a_call_is_announced_by_its_sentence_and_a_long_argument_is_cut() -> None:
    watched = Watched()
    one = gate(group(tool("search_notes", _run, reads_only=True)))
    await propose(one, call("search_notes", {"text": "green\ntea " * 20}), scope=scope(watched))
    (started,) = [event for event in watched.events if isinstance(event, ActionStarted)]
    assert started.summary.startswith("Searching the notes for “green tea green tea")
    assert started.summary.endswith("…”")
    assert len(started.summary) < 90


def test_a_secret_that_the_cut_would_go_through_is_not_shown_in_part() -> None:
    secret = "ghp_" + "a1B2" * 9
    said = sentence(tool("search_notes", _run), {"text": f"the token is {secret}"}, Redactor())
    assert "a1B2" not in said


def test_a_tool_of_somebody_else_is_not_taken_for_a_built_in_one() -> None:
    other = tool("read_file", _run, built_in=False)
    assert sentence(other, {"path": "a.txt"}, Redactor()) == "Using “read file”"
