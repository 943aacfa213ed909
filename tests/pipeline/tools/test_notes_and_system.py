"""Notes are their owner's alone; sums are exact and bounded; the time is that of the clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.domain.clock import ManualClock
from pipeline.runtime.scope import TurnScope
from pipeline.tools.arithmetic import calculated
from pipeline.tools.confine import person_folder, slug
from pipeline.tools.notes import notes_group
from pipeline.tools.registry import FixedGroup
from pipeline.tools.system import system_group
from pipeline.tools.tool import ToolFailed
from pipeline.tools.workspace import WorkspaceFolder
from pipeline.tools.zones import TimeZones
from tests.support.contexts import scope
from tests.support.tables import each
from tests.support.tool_gate import Person, call, gate, propose

EVE = scope(author=type(scope().author)(id="eve"))


async def _do(group: FixedGroup, name: str, turn: TurnScope | None = None, **arguments: Any) -> str:
    tools = {tool.name: tool for tool in group.fixed}
    return (await tools[name].run(arguments, turn or scope())).text


async def test_a_note_is_kept_read_found_replaced_and_deleted(tmp_path: Path) -> None:
    notes = notes_group(tmp_path)
    assert await _do(notes, "read_notes") == "There are no notes."
    await _do(notes, "write_note", title="Bread  list", text="rye\nspelt")
    await _do(notes, "write_note", title="Gift", text="a kite")
    assert sorted((await _do(notes, "read_notes")).splitlines()) == ["Bread list: rye spelt", "Gift: a kite"]
    assert await _do(notes, "read_notes", title="BREAD list") == "rye\nspelt"
    assert await _do(notes, "search_notes", text="KITE") == "Gift: a kite"
    await _do(notes, "write_note", title="gift", text="a book")
    assert await _do(notes, "read_notes", title="Gift") == "a book"
    await _do(notes, "delete_note", title="Gift")
    with pytest.raises(ToolFailed, match="there is no note “Gift”; there are: Bread list"):
        await _do(notes, "delete_note", title="Gift")


async def test_a_note_is_no_one_elses_and_its_file_the_accounts_alone(tmp_path: Path) -> None:
    notes = notes_group(tmp_path)
    await _do(notes, "write_note", title="../../../SOUL", text="mine")
    assert await _do(notes, "read_notes", EVE) == "There are no notes."
    with pytest.raises(ToolFailed):
        await _do(notes, "read_notes", EVE, title="../../../SOUL")
    (path,) = _files(tmp_path)
    assert path.parent == person_folder(tmp_path, scope().owner) / "notes"
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_rooms_notes_are_the_rooms_and_not_its_members(tmp_path: Path) -> None:
    notes = notes_group(tmp_path)
    await _do(notes, "write_note", scope(private=False), title="Menu", text="soup")
    assert "Menu" in await _do(notes, "read_notes", scope(private=False, author=EVE.author))
    assert await _do(notes, "read_notes") == "There are no notes."


async def test_keeping_a_note_asks_no_one_and_deleting_one_does(tmp_path: Path) -> None:
    person = Person()
    one = gate(notes_group(tmp_path), person=person)
    kept, gone = await propose(
        one,
        call("write_note", {"title": "a", "text": "b"}, call_id="1"),
        call("delete_note", {"title": "a"}, call_id="2"),
        scope=scope(),
        groups=("notes",),
    )
    assert (kept.success, gone.success) == (True, True)
    assert [asked["tool"] for asked in person.asked] == ["delete_note"]


@settings(max_examples=50)
@given(st.text(), st.text())
def test_two_owners_never_share_a_folder_and_no_name_leaves_it(one: str, two: str) -> None:
    assert (slug(one) == slug(two)) is (one == two)
    assert set(slug(one)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


@each(
    "expression, value",
    [
        ("2 + 3 * 4", "14"),
        ("2 * (3 + 4.5) ^ 2", "112.5"),
        ("0.1 + 0.2", "0.3"),
        ("1 / 3", "0.333333333333"),
        ("7 // 2", "3"),
        ("-7 % 3", "2"),
        ("2 ** -2", "0.25"),
        ("2 ^ 100", "1267650600228229401496703205376"),
        ("sqrt(2)", "1.41421356237"),
        ("round(2.567, 2)", "2.57"),
        ("max(1, 2.5, -3)", "2.5"),
        ("abs(-3) × 2 ÷ 4 =", "1.5"),  # noqa: RUF001 - as people type
        ("pi * 2", "6.28318530718"),
    ],
)
def test_a_sum_is_worked_out(expression: str, value: str) -> None:
    assert calculated(expression) == value


@each(
    "expression",
    [
        "",
        "1 +",
        "1 / 0",
        "9 ** 9 ** 9",
        "(10 ** 3000) ** 2",
        "10 ** 999999999999",
        "2.5 ** 5000",
        "1e999",
        "(-1) ** 0.5",
        "__import__('os').system('true')",
        "(1).__class__",
        "[1 for _ in (1,)]",
        "open('/etc/passwd')",
        "lambda: 1",
        "True + 1",
        "'a' * 99999999",
        "sqrt(-1)",
        "round(1, 2, 3)",
        "round(1, 2000)",
        "round(1, -9 ** 9)",
        "1" * 201,
        "max()",
    ],
)
def test_what_is_no_sum_or_too_large_is_refused_in_words(expression: str) -> None:
    with pytest.raises(ToolFailed):
        calculated(expression)


async def test_the_time_is_given_in_a_zone_and_an_unknown_zone_is_named() -> None:
    system = _system(ManualClock(1_780_000_000.0))
    assert await _do(system, "current_time") == "Thursday, 2026-05-28 20:26:40 UTC (UTC+0000, UTC)"
    assert "22:26:40 CEST" in await _do(system, "current_time", zone="Europe/Berlin")
    for zone in ("Mars/Base", "../../etc/passwd", "/etc/localtime", "Europe"):
        with pytest.raises(ToolFailed, match="there is no time zone"):
            await _do(system, "current_time", zone=zone)


async def test_the_program_tells_its_version_and_how_long_it_runs() -> None:
    clock = ManualClock()
    system = _system(clock)
    await clock.advance(3_700)
    assert await _do(system, "about") == "Parlour 1.2, running for 1 h 1 min."


def _system(clock: ManualClock) -> FixedGroup:
    return system_group(clock, TimeZones(WorkspaceFolder(Path("nowhere"), clock), clock), version="1.2")


def _files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]
