"""WIRING: configuration, storage, workers and lifecycle. Knows everyone; nobody knows it."""

__version__ = "0.1.0"
