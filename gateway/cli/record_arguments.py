"""The arguments of `parlour jobs`, `history`, `undo`, `audit` and `crises`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

Run = Callable[[argparse.Namespace], int]


def add_jobs(jobs: argparse.ArgumentParser, run: Run) -> None:
    """Add the arguments of `parlour jobs`, which `run` carries out."""
    actions = ("list", "retry", "drop")
    jobs.add_argument("action", nargs="?", choices=actions, default="list", help="default: list")
    jobs.add_argument("id", nargs="?", type=int, metavar="ID", help="the job, as the list shows it")
    jobs.set_defaults(run=run)


def add_history(history: argparse.ArgumentParser, run: Run) -> None:
    """Add the arguments of `parlour history`, which `run` carries out."""
    history.add_argument("file", nargs="?", default="", metavar="FILE", help="only the files of this name")
    history.add_argument("--verify", action="store_true", help="check the kept copies against their SHA-256")
    history.set_defaults(run=run)


def add_undo(undo: argparse.ArgumentParser, run: Run) -> None:
    """Add the arguments of `parlour undo`, which `run` carries out."""
    undo.add_argument("id", type=int, metavar="ID", help="the change, as `parlour history` shows it")
    undo.set_defaults(run=run)


def add_audit(audit: argparse.ArgumentParser, run: Run) -> None:
    """Add the arguments of `parlour audit`, which `run` carries out."""
    actions = ("show", "verify", "export", "prune")
    audit.add_argument("action", nargs="?", choices=actions, default="show", help="default: show")
    audit.add_argument("file", nargs="?", type=Path, metavar="FILE", help="of export: the file to write")
    audit.add_argument("--limit", type=int, default=50, metavar="N", help="of show: how many of the newest")
    audit.add_argument("--before", metavar="DATE", help="of prune: remove older records; such as 2026-01-31")
    audit.set_defaults(run=run)


def add_crises(crises: argparse.ArgumentParser, run: Run) -> None:
    """Add the arguments of `parlour crises`, which `run` carries out."""
    actions = ("list", "days", "keep")
    crises.add_argument("action", nargs="?", choices=actions, default="list", help="default: list")
    crises.add_argument("id", nargs="?", default="", metavar="ID", help="of keep: as the list shows it")
    crises.add_argument("--limit", type=int, default=50, metavar="N", help="of list: how many of the newest")
    crises.add_argument(
        "--days", type=int, default=0, metavar="N", help="of keep: for how many days from now"
    )
    crises.add_argument("--because", default="", metavar="TEXT", help="of keep: why; no words of the person")
    crises.add_argument("--json", action="store_true", help="one JSON object in each line")
    crises.set_defaults(run=run)
