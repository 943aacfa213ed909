"""Catch the log of each test at a lower cost.

pytest looks through all loggers, six times for each test, for those whose records do not reach the root
logger, to catch them too. The only such logger here is one that drops everything.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest
from _pytest.logging import catching_logs


def install(patch: pytest.MonkeyPatch) -> None:
    """Catch what reaches the root logger, until `patch` is undone."""
    patch.setattr(catching_logs, "__enter__", _entered)


def _entered(catching: Any) -> logging.Handler:
    """As `catching_logs.__enter__`, with the root logger alone."""
    root = logging.getLogger()
    handler: logging.Handler = catching.handler
    if catching.level is not None:
        handler.setLevel(catching.level)
        catching.orig_level = root.level
        root.setLevel(min(root.level, catching.level))
    root.addHandler(handler)
    catching.attached_loggers.append(root)
    return handler
