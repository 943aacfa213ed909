"""Graphs as JSON, Mermaid pictures and traces. Nothing in `execution` imports it."""
