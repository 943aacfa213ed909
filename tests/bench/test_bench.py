"""The benches can be listed and named, and end in one line of JSON. No figure is judged here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.report import Report, percentile, table
from tests.support.forked_children import run_child

_NAMES = (
    *("startup", "turn", "crash", "channels", "conversation", "page", "store", "cluster", "scaling"),
    *("heartbeat", "shield", "voice", "companion", "workflows", "graph"),
)


def test_the_list_names_every_bench(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    out = capsys.readouterr().out
    assert tuple(line.split()[0] for line in out.splitlines()) == _NAMES


def test_an_unknown_name_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "startupp"]) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    assert "no bench called startupp" in errors
    assert all(name in errors for name in _NAMES)


async def test_a_bench_ends_in_one_line_of_json(tmp_path: Path) -> None:
    code = await run_child("bench.__main__", "store", "--short", log=tmp_path / "log")
    out = (tmp_path / "log").read_text("utf-8")
    assert code == 0, out
    figures = json.loads(next(line for line in reversed(out.splitlines()) if line.startswith("{")))
    assert figures["bench"] == "store"
    assert figures["accept_p50_us"] > 0
    assert out.startswith("store: ")


def test_a_report_is_a_table_notes_and_the_figures() -> None:
    report = Report(
        bench="b",
        title="b: a title",
        head=("", "ms"),
        rows=[("long name", "1")],
        notes=("a note",),
        figures={"x": 1},
    )
    assert report.text().splitlines() == [
        "b: a title",
        "",
        "           ms",
        "---------  --",
        "long name   1",
        "",
        "* a note",
        '{"bench": "b", "x": 1}',
    ]


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert table(("a", "bb"), [("ccc", "d")]) == ["a    bb", "---  --", "ccc   d"]


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert percentile(values, 0.5) == 50.0
    assert percentile(values, 0.99) == 99.0
    assert percentile([7.0], 0.99) == 7.0
