"""The trace of a turn runs, and its figures are of a whole turn. Judged are the depth and the wrappers, which
are the same in each run, and the calls of a turn on the page, which differ by a few."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.forked_children import run_child
from tests.support.gateway_process import ROOT
from tools.trace_turn import MODULES, OWNER, PACKAGES, STREAM, TraceUnavailable, load_modules

_TURN = ("modules", "functions", "frames", "resumptions", "store_calls", "commits", "platform_calls")
_MOST_CALLS = {"modules": 170, "functions": 546, "frames": 788, "resumptions": 60}
"""Of a turn on the page: some more than it has, as tasks may wait for one another. A change that saves calls
lowers these."""
_PASSES = ("depth_worker_to_model", "event_wrappers")


async def test_three_traces_are_counted_and_listed(tmp_path: Path) -> None:
    listing = tmp_path / "frames.txt"
    log = tmp_path / "log"
    code = await run_child("tools.trace_turn", "--by-module", "--frames", str(listing), log=log)
    lines = log.read_text("utf-8").splitlines()
    assert code == 0, lines
    traces = json.loads(lines[-1])["trace"]
    assert list(traces) == ["text_turn", "page_turn", "voice_note", "live_chunk"]
    for name in ("text_turn", "voice_note"):
        figures = traces[name]
        assert min(figures[key] for key in (*_TURN, *_PASSES)) > 0
        assert figures["modules"] < figures["functions"] < figures["frames"]
        assert figures["commits"] <= figures["store_calls"]
        assert figures["depth_worker_to_model"] <= 10
        assert figures["event_wrappers"] <= 3
    page = traces["page_turn"]
    assert {name: page[name] for name, most in _MOST_CALLS.items() if page[name] > most} == {}
    chunk = traces["live_chunk"]
    assert 0 < chunk["modules"] < chunk["frames"] < 200
    assert [chunk[key] for key in (*_PASSES, "store_calls", "platform_calls")] == [0, 0, 0, 0]

    path = _below(lines, "text turn, from worker to model:")
    assert len(path) == traces["text_turn"]["depth_worker_to_model"]
    assert (path[0].split(":")[0], path[0].split()[1]) == (MODULES["worker"], OWNER)
    assert (path[-1].split(":")[0], path[-1].split()[1]) == (MODULES["model"], STREAM)
    assert len(_below(lines, "text turn, what a token passes:")) == traces["text_turn"]["event_wrappers"]

    listed = listing.read_text(encoding="utf-8").splitlines()
    _check_documented_steps(listed[: listed.index("# page turn")])
    calls = [line for line in listed if not line.startswith("# ")]
    assert len(calls) == sum(figures["frames"] for figures in traces.values())
    assert {line.partition(".")[0] for line in calls} <= set(PACKAGES)
    assert any(line.endswith("[store-writer]") for line in calls), "the store's threads are watched too"


def test_a_module_that_moved_is_named_in_words() -> None:
    with pytest.raises(TraceUnavailable, match=r"'worker' is said to be in gateway\.gone, .*no module"):
        load_modules({**MODULES, "worker": "gateway.gone"})


def test_a_function_that_moved_is_named_in_words() -> None:
    with pytest.raises(TraceUnavailable, match=r"gateway\.turns has no Worker\._run; put its new name"):
        load_modules({**MODULES, "worker": "gateway.turns"})


def _check_documented_steps(listed: list[str]) -> None:
    """The modules that docs/message-flow.md links first in the steps of a text message are entered in a turn
    on Telegram, in the order of the steps."""
    text = (ROOT / "docs" / "message-flow.md").read_text(encoding="utf-8")
    section = text.split("## A text message")[1].split("\n## ")[0]
    steps = re.findall(r"^\d\. .*?\(\.\./([\w/]+)\.py\)", section, re.MULTILINE | re.DOTALL)
    modules = [step.replace("/", ".") for step in steps]
    entered = [line.partition(":")[0] for line in listed]
    assert len(modules) >= 7
    # The journal, named by its commit, is made before the pipeline runs.
    in_order = [entered.index(name) for name in modules if name != "gateway.turns.journal"]
    assert in_order == sorted(in_order)
    assert "gateway.turns.journal" in entered


def _below(lines: list[str], title: str) -> list[str]:
    """The indented lines below a title."""
    below = lines[lines.index(title) + 1 :]
    return [line.strip() for line in below[: below.index("")]]
