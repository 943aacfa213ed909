"""`parlour graph trace`: print what a run did, from the store's file, also beside a running gateway."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.cli.graph import read_graph_file, write_out
from gateway.cli.run_history import newest_runs, run_records
from gateway.cli.stored_books import StoredBooks, StorePlace, in_store, store_place
from gateway.config import environment, load
from gateway.editor.saved_agents import graphs_with_saved
from gateway.storage.run_places import RunPlace
from gateway.turns.run_codec import runs_of
from pipeline.domain.errors import ConfigurationError, GraphError
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.documents.mermaid import mermaid
from pipeline.graph.documents.trace import Trace, TracedStep, trace
from pipeline.graph_book import SAVED, SavedName, installed_graphs, is_document, saved_graph

_LISTED = 20


def run_trace(options: argparse.Namespace) -> int:
    """Carry out `parlour graph trace`. Raises ConfigurationError, StorageError and RunUnreadable."""
    settings = load(options.config, environment(), options.overrides, secrets=False)
    place = store_place(settings, "runs")
    if options.run_id is None:
        return list_runs(place)
    graphs = (settings.agent.graph, *(profile.graph for profile in settings.agents.values()))
    documents = [graph for graph in graphs if graph is not None and is_document(graph)]
    return trace_run(place, options.run_id, options.graph, documents)


def list_runs(stored: StorePlace) -> int:
    """Print the newest runs, one per line, newest first. Exit code 0. Raises StorageError."""
    runs = newest_runs(stored, _LISTED)
    for place in runs:
        write_out(f"{_when(place.at)}  {place.run_id}  {place.thread}\n")
    if not runs:
        sys.stderr.write("parlour: there is no run on record yet\n")
    return 0


def trace_run(stored: StorePlace, run_id: str, graph_file: str | None, documents: Sequence[str] = ()) -> int:
    """Print the steps of a run and its path on the graph, as one mermaid text. Exit code 0. `documents` are
    the files of the configured agents' graphs; saved workflows are found by the run's graph.

    Raises ConfigurationError for a missing run or graph, StorageError, and RunUnreadable.
    """
    found = run_records(stored, run_id)
    runs = {} if found is None else runs_of(found[1])
    if found is None or run_id not in runs:
        raise ConfigurationError(
            f"{run_id}: there is no such run in the store; `parlour graph trace` lists the newest"
        )
    place, _ = found
    traced = trace(runs[run_id])
    write_out("".join(f"%% {line}\n" for line in trace_lines(traced, place)))
    write_out(_picture(traced, stored, graph_file, documents))
    return 0


def trace_lines(traced: Trace, place: RunPlace) -> list[str]:
    """What a run did, a line for each step."""
    head = traced.head
    quality = ", degraded" if traced.quality == "degraded" else ""
    lines = [
        f"run {head['run']} of graph {head['graph']} ({head['signature']}), {traced.status}{quality}",
        f"thread {place.thread}, message {place.message_id}, begun {_when(place.at)}",
    ]
    lines += [f"{number:3}. {_step(step)}" for number, step in enumerate(traced.steps, 1)]
    lines += [f"waits for a person at {node}" for node in traced.open_gates]
    if traced.unreadable:
        lines.append(f"{traced.unreadable} records could not be read")
    return lines


def _step(step: TracedStep) -> str:
    words = [step.node]
    if step.branch:
        words.append(f"in branch {step.branch}")
    if step.skipped:
        words.append("skipped, visited often enough")
    if step.attempts > 1:
        words.append(f"after {step.attempts} attempts")
    if step.error:
        words.append(f"failed ({' '.join(step.error.split())})")
    elif step.decision != "next":
        words.append(f"says {step.decision}")
    words += [*_tokens(step), *_tools(step)]
    if step.to:
        words.append(f"-> {', '.join(step.to)}")
    if step.seconds:
        words.append(f"{step.seconds * 1000:.1f} ms")
    return "  ".join(words)


def _tokens(step: TracedStep) -> list[str]:
    """The tokens of a model call and how it ended, as readable text; empty for other nodes."""
    agent = step.update.get("agent", {})
    asked, answered = step.used or (agent.get("prompt_tokens", 0), agent.get("completion_tokens", 0))
    used = [f"{asked} + {answered} tokens"] if asked or answered else []
    finish = agent.get("finish_reason", "stop")
    return used if finish in ("stop", "tool_calls") else [*used, f"finish reason {finish}"]


def _tools(step: TracedStep) -> list[str]:
    """The tools that a step ran, each with its result."""
    found = [one["detail"] for one in step.update.get("thoughts", ()) if one.get("stage") == "tool_call"]
    return [f"{one['tool_name']}: {'done' if one['success'] else 'failed'}" for one in found]


def _picture(traced: Trace, stored: StorePlace, graph_file: str | None, documents: Sequence[str]) -> str:
    graph = _graph(traced, stored, graph_file, documents)
    try:
        drawn = mermaid(graph, path=traced.path, open_gates=traced.open_gates, failed=traced.failed)
    except GraphError as error:
        return f"%% the graph is not drawn: it has changed since ({error})\n"
    if graph_file is None and graph.signature != traced.head["signature"]:
        return (
            f"%% the graph has changed since the run; this is its present form ({graph.signature})\n{drawn}"
        )
    return drawn


def _graph(
    traced: Trace, stored: StorePlace, graph_file: str | None, documents: Sequence[str]
) -> GraphSpec[Any, Any]:
    book, name = graphs_with_saved(stored.folder, stored.url), traced.head["graph"]
    if graph_file is not None:
        return book.open(graph_file) if graph_file.startswith(SAVED) else _of_file(graph_file, traced)
    found = book.find(name)
    if found is not None:
        return found
    for document in documents:
        graph = read_graph_file(document)
        if graph.name == name:
            return _of_file(document, traced)
    saved = _saved(traced, stored)
    if saved is not None:
        return saved
    raise ConfigurationError(
        f"no installed, configured or saved graph is called {name}; name its document with --graph FILE"
    )


def _saved(traced: Trace, stored: StorePlace) -> GraphSpec[Any, Any] | None:
    """The saved workflow that ran: the version with the run's form, else the newest of that name."""
    newest: GraphSpec[Any, Any] | None = None
    with ThreadPoolExecutor(1) as thread:  # this one may run an event loop
        texts = thread.submit(lambda: asyncio.run(in_store(stored, _saved_texts))).result()
    for name, version, text in texts:
        try:
            graph = saved_graph(text, SavedName(name=name, version=version))
        except ConfigurationError:
            continue  # a version with mistakes has never run
        if graph.name == traced.head["graph"]:
            newest = newest or graph
            if graph.signature == traced.head["signature"]:
                return graph
    return newest


async def _saved_texts(books: StoredBooks) -> list[tuple[str, int, str]]:
    """All versions of the saved documents, newest first within each: name, version and text."""
    found = []
    for document in await books.workflows.newest():
        for one in await books.workflows.versions(document.name):
            text = await books.workflows.text(one.name, one.version)
            if text is not None:
                found.append((one.name, one.version, text))
    return found


def _of_file(file: str, traced: Trace) -> GraphSpec[Any, Any]:
    """The graph of a document: as an agent runs it, if the run has its form."""
    try:
        runnable = installed_graphs().document(Path(file))
    except ConfigurationError:
        return read_graph_file(file)
    return runnable if runnable.signature == traced.head["signature"] else read_graph_file(file)


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
