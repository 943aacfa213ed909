"""`parlour workflow runs`: the newest runs of workflows, from the store, beside a running gateway too."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from gateway.agents.agent_book import WorkflowFacts
from gateway.agents.workflow_facts import workflow_facts
from gateway.app.store import saved_graphs
from gateway.cli.graph import write_out
from gateway.cli.run_history import newest_runs, records_at
from gateway.cli.stored_books import store_place
from gateway.config import Settings
from gateway.storage.inbox_items import run_handle
from gateway.storage.run_places import RunPlace
from gateway.turns.run_codec import runs_of
from pipeline.graph.run.records import RawRecord, RunUnreadable, head_of

_LISTED = 20
_LOOKED_AT = 400
"""Newest runs of all graphs among which those of workflows are looked for."""
_ASKED_CHARS = 80


def workflow_runs(settings: Settings, graphs: Sequence[str]) -> int:
    """Print the newest runs of the configured agents' workflows, one per line, newest first. `graphs` are the
    names and files of the agents' graphs. Exit code 0. Raises ConfigurationError and StorageError."""
    place, lines = store_place(settings, "runs"), list[str]()
    book = saved_graphs(settings)
    found = [book.workflow(graph) for graph in graphs]
    workflows = {one.name: workflow_facts(one) for one in found if one is not None}
    for found_at, rows in records_at(place, newest_runs(place, _LOOKED_AT)):
        line = _line(found_at, runs_of(rows).get(found_at.run_id, []), workflows)
        if line and len(lines) < _LISTED:
            lines.append(line)
    write_out("".join(lines))
    if not lines:
        sys.stderr.write("parlour: no workflow of the configured agents has a run on record yet\n")
    return 0


def _line(place: RunPlace, records: list[RawRecord], workflows: Mapping[str, WorkflowFacts]) -> str:
    """One run; empty for one of another graph."""
    try:
        name = head_of(records)["graph"]
    except RunUnreadable:
        return ""
    workflow = workflows.get(name)
    if workflow is None:
        return ""
    run = workflow.shown(records)
    begun = f"{datetime.fromtimestamp(place.at, UTC):%Y-%m-%d %H:%M:%S}"
    words = [begun, run_handle(place.message_id), place.run_id, place.thread, name, run.status, run.node]
    if run.waits_for:
        words.append(f"waits for: {' '.join(run.waits_for.split())[:_ASKED_CHARS]}")
    return "  ".join(words) + "\n"
