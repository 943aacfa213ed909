"""Check rules across the settings of the store, and of the processes that share it."""

from __future__ import annotations

from importlib.util import find_spec

from gateway.config.cross_checks import CrossCheck
from gateway.config.settings import Settings


def _is_postgres(settings: Settings) -> bool:
    return settings.storage.kind == "postgres"


STORAGE_RULES = (
    CrossCheck(
        path="storage.kind",
        reads=("storage.kind",),
        broken=lambda settings: _is_postgres(settings) and find_spec("asyncpg") is None,
        what="is postgres, and the driver is not installed",
        fix="run: pip install 'parlour[postgres]'",
    ),
    CrossCheck(
        path="storage.url",
        reads=("storage.kind", "storage.url"),
        broken=lambda settings: _is_postgres(settings) and settings.storage.url is None,
        what='is missing, as storage.kind is "postgres"',
        fix="set it to a reference to the database's URL, such as env:PARLOUR_DATABASE_URL",
        caused_by="storage.kind",
    ),
    CrossCheck(
        path="storage.url",
        reads=("storage.kind", "storage.url"),
        broken=lambda settings: not _is_postgres(settings) and settings.storage.url is not None,
        what="has no effect, as storage.kind is not postgres",
        fix='remove it or set storage.kind to "postgres"',
    ),
    CrossCheck(
        path="cluster.role",
        reads=("cluster.role", "storage.kind"),
        broken=lambda settings: settings.cluster.shared and not _is_postgres(settings),
        what="is not alone, but storage.kind is not postgres, which several processes can share",
        fix='set storage.kind to "postgres" and storage.url, or remove it',
    ),
    CrossCheck(
        path="cluster.role",
        reads=("cluster.role", "bus.kind"),
        broken=lambda settings: settings.cluster.shared and settings.bus.kind == "process",
        what="is not alone, but bus.kind is process: signals would not reach the other processes",
        fix='set bus.kind to "redis" or "postgres" and bus.url, or remove it',
    ),
    CrossCheck(
        path="cluster.ttl_s",
        reads=("cluster.ttl_s", "cluster.beat_s"),
        broken=lambda settings: settings.cluster.ttl_s < 3 * settings.cluster.beat_s,
        what="is less than three times cluster.beat_s: one late report would end every turn",
        fix="raise it, or lower cluster.beat_s",
    ),
)
