"""Check rules across the settings of the store."""

from __future__ import annotations

from importlib.util import find_spec

from gateway.config.cross_checks import Rule
from gateway.config.settings import Settings


def _is_postgres(settings: Settings) -> bool:
    return settings.storage.kind == "postgres"


STORAGE_RULES = (
    Rule(
        path="storage.kind",
        reads=("storage.kind",),
        broken=lambda settings: _is_postgres(settings) and find_spec("asyncpg") is None,
        what="is postgres, and the driver is not installed",
        fix="run: pip install 'parlour[postgres]'",
    ),
    Rule(
        path="storage.url",
        reads=("storage.kind", "storage.url"),
        broken=lambda settings: _is_postgres(settings) and settings.storage.url is None,
        what='is missing, as storage.kind is "postgres"',
        fix="set it to a reference to the database's URL, such as env:PARLOUR_DATABASE_URL",
        caused_by="storage.kind",
    ),
    Rule(
        path="storage.url",
        reads=("storage.kind", "storage.url"),
        broken=lambda settings: not _is_postgres(settings) and settings.storage.url is not None,
        what="has no effect, as storage.kind is not postgres",
        fix='remove it or set storage.kind to "postgres"',
    ),
)
