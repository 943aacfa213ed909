"""`parlour graph run`: talk to a graph in the terminal, and print what each run did. Keeps nothing."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gateway.cli.chat import chat
from gateway.cli.trace import trace_lines
from gateway.runtime.data_dir import STORE_FILE
from gateway.storage.sqlite.history import newest_runs, run_records
from gateway.turns.run_codec import runs_of
from pipeline.graph.documents.trace import trace
from pipeline.graph_book import installed_graphs

_MOST_RUNS = 50


def graph_run(config: Path | None, overrides: Sequence[str], graph: str, message: str | None) -> int:
    """Run the graph for each line of input, or for `message` alone; returns the exit code of `chat`.

    Nothing is kept: neither the conversation nor the bot's own folder is read or written. Raises
    ConfigurationError with all mistakes of the graph.
    """
    installed_graphs().open(graph)
    with tempfile.TemporaryDirectory(prefix="parlour-") as folder:
        own = (f'data.dir="{folder}"', 'storage.kind="sqlite"', f'agent.graph="{graph}"')
        code = chat(config, [*overrides, *own], None, only=message)
        for line in _runs(Path(folder) / STORE_FILE):
            sys.stderr.write(f"{line}\n")
    return code


def _runs(store: Path) -> list[str]:
    lines: list[str] = []
    for place in reversed(newest_runs(store, _MOST_RUNS)):
        found = run_records(store, place.run_id)
        if found is not None:
            lines += trace_lines(trace(runs_of(found[1])[place.run_id]), place)
    return lines
