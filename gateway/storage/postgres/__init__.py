"""The store in a Postgres database. Only this package imports asyncpg, of the extra `postgres`."""

from gateway.storage.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
