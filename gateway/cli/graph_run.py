"""`parlour graph run`: talk to a graph in the terminal, and print what each run did."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from gateway.cli.chat import chat
from gateway.cli.trace import trace_lines
from gateway.config import DEFAULT_AGENT, environment, load
from gateway.runtime.data_dir import STORE_FILE
from gateway.storage.run_places import RunPlace
from gateway.storage.sqlite.history import newest_runs, run_records
from gateway.turns.run_codec import runs_of
from pipeline.graph.documents.trace import trace
from pipeline.graph.run.records import RawRecord
from pipeline.graph_book import installed_graphs

Lines: TypeAlias = Callable[[Sequence[RawRecord], RunPlace], list[str]]
"""Writes what a run did, from its records."""
_MOST_RUNS = 50


def graph_run(
    config: Path | None,
    overrides: Sequence[str],
    graph: str,
    message: str | None,
    lines: Lines | None = None,
) -> int:
    """Run the graph for each line of input, or for `message` alone; returns the exit code of `chat`. `lines`
    writes what a run did, by default step by step.

    The conversation is not kept, and no other channel is started. A configured workspace is used as it is.
    Raises ConfigurationError with all mistakes of the graph.
    """
    installed_graphs().open(graph)
    settings = load(config, environment(), overrides, secrets=False)
    with tempfile.TemporaryDirectory(prefix="parlour-") as folder:
        own = [f"data.dir={json.dumps(folder)}", 'storage.kind="sqlite"', f"agent.graph={json.dumps(graph)}"]
        own += [f"{account.path}.enabled=false" for account in settings.channels.accounts()]
        # The graph answers here, whatever the routes say of the terminal.
        own += [f"routes.{at}.agent={json.dumps(DEFAULT_AGENT)}" for at in range(1, len(settings.routes) + 1)]
        code = chat(config, [*overrides, *own], only=message)
        for line in _runs(Path(folder) / STORE_FILE, lines or _steps):
            sys.stderr.write(f"{line}\n")
    return code


def _runs(store: Path, lines_of: Lines) -> list[str]:
    lines: list[str] = []
    for place in reversed(newest_runs(store, _MOST_RUNS)):
        found = run_records(store, place.run_id)
        if found is not None:
            lines += lines_of(runs_of(found[1])[place.run_id], place)
    return lines


def _steps(records: Sequence[RawRecord], place: RunPlace) -> list[str]:
    return trace_lines(trace(records), place)
