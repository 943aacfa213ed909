"""The `parlour` command: one module per subcommand."""

from __future__ import annotations

from gateway.cli.main import main

__all__ = ["main"]
