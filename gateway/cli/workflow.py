"""`parlour workflow`: check, draw and run workflow documents, and playbooks."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from gateway.cli import playbook
from gateway.cli.graph import write_out
from gateway.cli.graph_run import graph_run
from gateway.storage.run_places import RunPlace
from pipeline.domain.errors import ConfigurationError, GraphError
from pipeline.graph.documents.json_text import parsed_json
from pipeline.graph.run.records import RawRecord
from pipeline.graph_book import document_text, has_playbook_text, in_file, workflow_name
from pipeline.workflows.document import Workflow, WorkflowAgent
from pipeline.workflows.exploring.explorer import BOUND, explore
from pipeline.workflows.exploring.shown import in_words
from pipeline.workflows.mistakes import Mistake
from pipeline.workflows.normalising import normalised
from pipeline.workflows.picture import workflow_picture
from pipeline.workflows.reading import checked, read_workflow
from pipeline.workflows.run_record import log_lines, run_record

_INVALID = 2


def workflow_check(files: Sequence[Path], bound: int | None = None) -> int:
    """Print every mistake of the documents, one per line with its file. A document without mistakes is
    explored, up to `bound` states, and the shortest way to what must not happen is printed. Exit code 0 if
    nothing is wrong, else 2."""
    wrong = False
    for file in files:
        found = playbook.checked_lines(file)
        if found is not None:
            lines, good = found
            wrong = wrong or not good
            write_out("".join(f"{file}: {line}\n" for line in lines))
            continue
        workflow, mistakes = _checked(file)
        wrong = wrong or bool(mistakes)
        for mistake in mistakes:
            write_out(f"{file}: {mistake}\n")
        if workflow is not None:
            steps = f"{len(workflow.reached)} of {len(workflow.nodes)} nodes are reached"
            write_out(f"{file}: no mistakes; {steps}\n")
            named = {
                node.model
                for node in workflow.nodes.values()
                if isinstance(node, WorkflowAgent) and node.model
            }
            if named:
                models = ", ".join(sorted(named))
                write_out(f"{file}: it names {models}; the model of your configuration answers\n")
            wrong = _explored(file, workflow, bound or BOUND) or wrong
    return _INVALID if wrong else 0


def _explored(file: Path, workflow: Workflow, bound: int) -> bool:
    """Explore a workflow, and print the verdict; whether something is wrong."""
    explored = explore(workflow, bound)
    verdict, *details = in_words(explored)
    write_out("\n".join((f"{file}: {verdict}", *details)) + "\n")
    return explored.counterexample is not None


def _checked(file: Path) -> tuple[Workflow | None, tuple[Mistake, ...]]:
    try:
        text = document_text(file)
    except ConfigurationError as error:
        return None, (Mistake(what=str(error).removeprefix(f"{file}: ")),)
    return checked(text, workflow_name(file))


def workflow_show(file: Path, *, as_json: bool) -> int:
    """Print the workflow as mermaid, or its document in the form of today. Exit code 0. Raises
    ConfigurationError with all its mistakes."""
    text = document_text(file)
    if has_playbook_text(text):
        write_out(playbook.shown(file, text, as_json=as_json))
        return 0
    workflow = _read(file, text)
    if as_json:
        write_out(
            json.dumps(normalised(parsed_json(text, "the document")), indent=2, ensure_ascii=False) + "\n"
        )
    else:
        write_out(workflow_picture(workflow))
    return 0


def workflow_run(
    config: Path | None, overrides: Sequence[str], file: str, message: str | None, *, as_json: bool
) -> int:
    """Run the workflow for `message`, or for each line of input, as an agent of the configuration would: an
    approval is asked for in the terminal. Then print the log of each run. The exit code is that of
    `parlour chat`. Raises ConfigurationError with all mistakes of the document."""
    path = Path(file)
    text = document_text(path)
    if has_playbook_text(text):
        sys.stdout.flush()
        return graph_run(config, overrides, file, message, playbook.run_lines(path, text, as_json=as_json))
    workflow = _read(path, text)

    def lines(records: Sequence[RawRecord], _place: RunPlace) -> list[str]:
        run = run_record(workflow, records)
        if as_json:
            return [json.dumps(run.plain(), indent=2, ensure_ascii=False)]
        return [f"run {run.id}: {run.status}", *log_lines(run)]

    sys.stdout.flush()
    return graph_run(config, overrides, file, message, lines)


def _read(file: Path, text: str) -> Workflow:
    try:
        return read_workflow(text, workflow_name(file))
    except GraphError as error:
        raise in_file(file, error) from error
