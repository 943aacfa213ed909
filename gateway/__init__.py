"""WIRING: configuration, storage, workers and lifecycle. Imports all packages; none imports it."""

__version__ = "0.1.0"
