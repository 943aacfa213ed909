"""Run adapters under supervision, find them by thread, and read their timelines."""
