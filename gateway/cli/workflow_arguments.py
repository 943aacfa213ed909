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
