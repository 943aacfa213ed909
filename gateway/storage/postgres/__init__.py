"""The store in a Postgres database. Only this package imports asyncpg, of the extra `postgres`."""
