"""Run the actions of `parlour people`."""

from __future__ import annotations

import argparse

from gateway.cli.people import invite, list_people, remove
from gateway.cli.people_erase import erase
from gateway.cli.people_export import export_person
from gateway.config import environment, load
from pipeline.domain.errors import ConfigurationError


def run_people(options: argparse.Namespace) -> int:
    """Run the action with its parsed `options`. Raises ConfigurationError, StorageError and InvalidInput."""
    settings = load(options.config, environment(), options.overrides, secrets=False)
    if settings.storage.kind == "memory":
        raise ConfigurationError(
            'storage.kind: in memory no one can be invited, exported or erased from outside; use "sqlite"'
        )
    match options.action:
        case "invite":
            return invite(settings, name=options.name, known=options.known, days=options.days)
        case "remove":
            return remove(settings, options.name)
        case "export":
            return export_person(settings, options.name, options.to)
        case "erase":
            return erase(settings, options.name, confirmed=options.yes)
    return list_people(settings)
