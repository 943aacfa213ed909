"""The arguments of `parlour people`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Final

_PERSON: Final = "CHANNEL:ACCOUNT:USER, such as telegram:main:1001, or the name of someone on the page"


def add_people(
    people: argparse.ArgumentParser,
    common: argparse.ArgumentParser,
    run: Callable[[argparse.Namespace], int],
) -> None:
    """Add the actions, which `run` carries out; `common` has the arguments of every command."""
    actions = people.add_subparsers(title="actions", required=True, metavar="ACTION")
    invite = actions.add_parser("invite", parents=[common], help="a link for one person, also as a QR code")
    who = invite.add_mutually_exclusive_group()
    who.add_argument("--name", default="", metavar="NAME", help="what the new person is called")
    who.add_argument("--for", dest="known", default="", metavar="NAME", help="one more device of this person")
    invite.add_argument(
        "--days", type=int, default=7, metavar="N", help="how long the link counts (default: 7)"
    )
    invite.set_defaults(run=run, action="invite")
    listed = actions.add_parser("list", parents=[common], help="who is invited, and on which devices")
    listed.set_defaults(run=run, action="list")
    remove = actions.add_parser(
        "remove", parents=[common], help="sign a person out, and erase what is theirs"
    )
    remove.add_argument("name", metavar="NAME", help="the person, as the list shows them")
    remove.set_defaults(run=run, action="remove")
    export = actions.add_parser(
        "export", parents=[common], help="write everything that is kept of a person into a folder"
    )
    export.add_argument("name", metavar="PERSON", help=_PERSON)
    export.add_argument(
        "--to", type=Path, required=True, metavar="FOLDER", help="a folder that is not there yet"
    )
    export.set_defaults(run=run, action="export")
    erase = actions.add_parser("erase", parents=[common], help="delete everything that is kept of a person")
    erase.add_argument("name", metavar="PERSON", help=_PERSON)
    erase.add_argument("--yes", action="store_true", help="erase; without it, what would be is shown")
    erase.set_defaults(run=run, action="erase")
