"""The arguments of `parlour store`."""

from __future__ import annotations

import argparse

from pipeline.domain.errors import ConfigurationError

_URL = "its URL, or where it is, as env:NAME or file:PATH, so that no list of processes shows the password"


def add_store(store: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    """Add the arguments of `parlour store`."""
    actions = store.add_subparsers(title="actions", required=True, metavar="ACTION")
    words = "copy everything between the data folder and a Postgres database; no gateway may run"
    migrate = actions.add_parser("migrate", parents=[common], help=words)
    where = migrate.add_mutually_exclusive_group(required=True)
    where.add_argument("--to", metavar="URL", default="", help=f"into this database: {_URL}")
    where.add_argument(
        "--from", dest="back_from", metavar="URL", default="", help="back into the data folder"
    )
    migrate.set_defaults(run=_migrate)


def _migrate(options: argparse.Namespace) -> int:
    try:
        from gateway.cli.store_migrate import run_migrate  # noqa: PLC0415 - its libraries may be missing
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{error.name} is missing: install the extra, as in pip install 'parlour[postgres]'"
        ) from error
    return run_migrate(options)
