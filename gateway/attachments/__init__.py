"""Fetch, read and store the files that people send."""
