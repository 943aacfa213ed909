"""Run adapters under supervision and read their timelines."""
