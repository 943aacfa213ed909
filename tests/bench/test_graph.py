"""The graph bench: its own side, its arithmetic, its picture, and what it says without LangGraph."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.__main__ import main
from bench.graph import pairings
from bench.graph_measure import stored_bytes, summary, worker
from bench.graph_ours import Ours, rebuilt
from bench.graph_ours_graphs import graph_for
from bench.graph_plot import Bars, in_words, plot
from bench.graph_work import MODES, Case, check_state, seed
from bench.graph_worker import Hold

_PYTHON = Path(sys.executable)
_BARS = (Bars(label="a turn <1>", ours_us=40.0, peer_us=12_000.0, ratio=300.0),)


def test_without_langgraph_it_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "--peer", str(tmp_path / "python")]) == 1
    out, errors = capsys.readouterr()
    assert out == ""
    assert "make bench NAME=graph" in errors


@pytest.mark.parametrize("key", list(pairings()))
async def test_our_side_does_the_work_of_every_case(key: str, tmp_path: Path) -> None:
    case = pairings()[key].ours
    case = replace(case, history=min(case.history, 10))
    ours = Ours(tmp_path, Hold())
    try:
        turns = await ours.prepare(case, 8)
        for number, turn in enumerate(turns):
            check_state(case, number, await turn())
    finally:
        await ours.close()


def test_a_wrong_result_is_refused() -> None:
    with pytest.raises(RuntimeError, match="not with 40"):
        check_state(Case(graph="loop"), 0, {"n": 39})


async def test_a_worker_measures_time_bytes_and_memory(tmp_path: Path) -> None:
    turn = Case(graph="turn", store="sqlite", history=10)
    async with worker(_PYTHON, "bench.graph_ours", tmp_path / "ours") as ours:
        assert (await ours.about())["synchronous"] == 2
        assert await ours.measure(turn, 3) > 0
        written = await ours.written(turn, 3)
        held = await ours.hold(Case(graph="held", store="sqlite", history=4), 20)
    assert 280 < written.rows < 1024, "two messages of 80 and 200 characters, in less than a kilobyte"
    assert written.wal > written.rows
    assert 0 < held.empty_mb <= held.held_mb


async def test_a_worker_that_dies_says_why(tmp_path: Path) -> None:
    async with worker(_PYTHON, "bench.graph_ours", tmp_path / "ours") as ours:
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            await ours.measure(Case(graph="loop"), 0)


async def test_a_rebuilt_thread_is_the_thread(tmp_path: Path) -> None:
    case = Case(graph="turn", store="sqlite-cold", history=10)
    ours = Ours(tmp_path, Hold())
    try:
        (turn,) = await ours.prepare(case, 1)
        state = await turn()
        records = await ours.records("web:local:1")
    finally:
        await ours.close()
    assert rebuilt(graph_for("turn", Hold()), records) == state
    assert len(state["history"]) == 12


def test_bytes_are_those_of_the_values(tmp_path: Path) -> None:
    path = tmp_path / "db.sqlite3"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE a (n INTEGER, x REAL, t TEXT, b BLOB)")
        db.execute("INSERT INTO a VALUES (1, 0.5, 'äb', x'000102'), (NULL, NULL, NULL, NULL)")
        db.commit()
    assert stored_bytes(path) == 8 + 8 + 3 + 3


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    found = summary("x", [(1.0, 10.0), (10.0, 20.0), (2.0, 10.0)])
    assert (found.ours_us, found.peer_us) == (2.0, 10.0)
    assert (found.lowest, found.ratio, found.highest) == (2.0, 5.0, 10.0)


def test_a_history_alternates_and_repeats_nothing() -> None:
    messages = seed("t", 6)
    assert [message["role"] for message in messages] == ["user", "assistant"] * 3
    assert len({message["content"] for message in messages}) == 6


def test_the_safety_graph_has_eight_nodes_and_the_subgraph_seven() -> None:
    graph = graph_for("safety8", Hold())
    inner = graph.specs["therapeutic"].subgraph
    assert len(graph.nodes) == 8
    assert inner is not None
    assert set(inner.nodes) == {"dispatcher", *MODES}


def test_the_picture_is_valid_and_tells_the_figures() -> None:
    root = ElementTree.fromstring(plot(_BARS, title="A & B", peer="LangGraph"))
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {"A & B", "a turn <1>", "40 µs", "12 ms, 300 times", "LangGraph"} <= set(texts)
    widths = [
        float(element.get("width", "0"))
        for element in root.iter()
        if element.tag.endswith("rect") and element.get("y", "0") > "7"
    ]
    assert len(widths) == 2
    assert widths[0] < widths[1]


def test_a_picture_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="above zero"):
        plot((), title="", peer="")


@pytest.mark.parametrize(
    ("us", "words"), [(0.25, "0.2 µs"), (8.0, "8 µs"), (56.4, "56 µs"), (1300.0, "1.3 ms"), (2e6, "2 s")]
)
def test_times_are_in_words(us: float, words: str) -> None:
    assert in_words(us) == words
