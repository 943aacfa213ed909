"""What `parlour workflow` prints of a playbook: its mistakes, its picture, the events of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from gateway.cli.graph_run import Lines
from gateway.storage.run_places import RunPlace
from pipeline.domain.errors import ConfigurationError, GraphError
from pipeline.graph.documents.json_text import parsed_json
from pipeline.graph.run.records import RawRecord
from pipeline.graph_book import beside, document_text, has_playbook_text, in_file, workflow_name
from pipeline.playbooks.document import Playbook
from pipeline.playbooks.picture import playbook_picture
from pipeline.playbooks.reading import checked_playbook, read_playbook
from pipeline.playbooks.run_record import event_lines, playbook_record


def checked_lines(file: Path) -> tuple[list[str], bool] | None:
    """The lines about a playbook's file, and whether it has no mistakes; None for another document, and for
    one that cannot be read."""
    try:
        text = document_text(file)
    except ConfigurationError:
        return None
    if not has_playbook_text(text):
        return None
    playbook, mistakes = checked_playbook(text, workflow_name(file), beside(file))
    if playbook is None:
        return [str(mistake) for mistake in mistakes], False
    reached = len(playbook.reached_from(playbook.trigger.id)) + 1
    lines = [f"no mistakes; {reached} of {len(playbook.nodes)} nodes are reached"]
    if playbook.others:
        lines.append(f"it uses {', '.join(playbook.others)}")
    return lines, True


def shown(file: Path, text: str, *, as_json: bool) -> str:
    """The playbook as a mermaid flowchart, or its document. Raises ConfigurationError with all mistakes."""
    playbook = _read(file, text)
    if as_json:
        return json.dumps(parsed_json(text, "the document"), indent=2, ensure_ascii=False) + "\n"
    return playbook_picture(playbook)


def run_lines(file: Path, text: str, *, as_json: bool) -> Lines:
    """Writes what a run did. Raises ConfigurationError as `shown`."""
    playbook = _read(file, text)

    def lines(records: Sequence[RawRecord], _place: RunPlace) -> list[str]:
        run = playbook_record(playbook, records)
        if as_json:
            return [json.dumps(run.plain(), indent=2, ensure_ascii=False)]
        return [f"run {run.id}: {run.status}", *event_lines(run)]

    return lines


def _read(file: Path, text: str) -> Playbook:
    try:
        return read_playbook(text, workflow_name(file), beside(file))
    except GraphError as error:
        raise in_file(file, error) from error
