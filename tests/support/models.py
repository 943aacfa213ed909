"""The bundled models as tests use them: really there, or a failure that says what to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli.models import models_present

MODELS_DIR = Path(__file__).parents[2] / "models"


def require_models() -> Path:
    """The folder of the bundled models; fails, rather than skips, where one is missing."""
    missing = [words for words in models_present(MODELS_DIR) if words]
    if missing:
        pytest.fail("; ".join([*missing, "or simply run `make models`"]), pytrace=False)
    return MODELS_DIR
