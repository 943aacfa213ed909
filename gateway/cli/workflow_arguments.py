"""The arguments of `parlour workflow`, and what each action runs."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_workflow(workflow: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    """Add the actions; `common` has the arguments of every command."""
    actions = workflow.add_subparsers(title="actions", required=True, metavar="ACTION")
    check = actions.add_parser(
        "check", help="list every mistake of workflow documents, and explore their runs; exit code 2 if any"
    )
    check.add_argument("files", nargs="+", metavar="FILE", type=Path, help="a workflow document")
    check.add_argument(
        "--bound",
        metavar="N",
        type=_states,
        help="look at up to N states of the runs of a document (default: 2000)",
    )
    check.set_defaults(run=_check)
    show = actions.add_parser("show", help="a workflow as a mermaid picture")
    show.add_argument("file", metavar="FILE", type=Path, help="a workflow document")
    show.add_argument(
        "--json", action="store_true", help="print the document, older forms rewritten, instead"
    )
    show.set_defaults(run=_show)
    run = actions.add_parser(
        "run", parents=[common], help="run a workflow in this terminal, and print its log"
    )
    run.add_argument("file", metavar="FILE", help="a workflow document")
    run.add_argument(
        "--input", metavar="TEXT", help="the message that begins the run; without it, each line typed"
    )
    run.add_argument(
        "--json", action="store_true", help="print the record of each run as JSON instead of its log"
    )
    run.set_defaults(run=_run)
    listed = actions.add_parser("list", parents=[common], help="the workflows that the page's editor saves")
    listed.set_defaults(run=_list)
    read = actions.add_parser(
        "import", parents=[common], help="save a document for the page's editor, as the newest version"
    )
    read.add_argument("file", metavar="FILE", type=Path, help="a workflow document")
    read.add_argument("name", metavar="NAME", nargs="?", default="", help="by default the document's name")
    read.set_defaults(run=_import)
    export = actions.add_parser("export", parents=[common], help="print the document of a saved workflow")
    export.add_argument("name", metavar="NAME", help="a saved workflow")
    export.add_argument("--version", metavar="N", type=int, help="by default the newest version")
    export.set_defaults(run=_export)
    runs = actions.add_parser(
        "runs", parents=[common], help="the newest runs of all chats, and what each is at and waits for"
    )
    runs.set_defaults(run=_runs)


def _states(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of states; write a whole number from 1 on")
    return int(text)


def _check(options: argparse.Namespace) -> int:
    from gateway.cli.workflow import workflow_check  # noqa: PLC0415 - only this command needs it

    return workflow_check(options.files, options.bound)


def _show(options: argparse.Namespace) -> int:
    from gateway.cli.workflow import workflow_show  # noqa: PLC0415 - as above

    return workflow_show(options.file, as_json=options.json)


def _run(options: argparse.Namespace) -> int:
    from gateway.cli.workflow import workflow_run  # noqa: PLC0415 - as above

    return workflow_run(options.config, options.overrides, options.file, options.input, as_json=options.json)


def _list(options: argparse.Namespace) -> int:
    from gateway.cli.saved_workflows import list_saved, stored  # noqa: PLC0415 - as above

    return list_saved(stored(options.config, options.overrides))


def _import(options: argparse.Namespace) -> int:
    from gateway.cli.saved_workflows import import_file, stored  # noqa: PLC0415 - as above

    return import_file(stored(options.config, options.overrides), options.file, options.name)


def _export(options: argparse.Namespace) -> int:
    from gateway.cli.saved_workflows import export_saved, stored  # noqa: PLC0415 - as above

    return export_saved(stored(options.config, options.overrides), options.name, options.version)


def _runs(options: argparse.Namespace) -> int:
    from gateway.cli.workflow_runs import workflow_runs  # noqa: PLC0415 - as above
    from gateway.config import environment, load  # noqa: PLC0415 - as above

    settings = load(options.config, environment(), options.overrides, secrets=False)
    graphs = (settings.agent.graph, *(profile.graph for profile in settings.agents.values()))
    return workflow_runs(settings, [graph for graph in graphs if graph is not None])
