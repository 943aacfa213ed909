"""What the configuration's tests share: a file with given text, and loading that is expected to fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from gateway.config import ConfigurationProblems, load


def write_config(folder: Path, text: str) -> Path:
    path = folder / "parlour.toml"
    path.write_text(text, encoding="utf-8")
    return path


def problem_lines(
    path: Path | None, environ: Mapping[str, str] | None = None, overrides: Sequence[str] = ()
) -> list[str]:
    """The lines of the problems that loading raises."""
    with pytest.raises(ConfigurationProblems) as caught:
        load(path, environ or {}, overrides)
    lines = str(caught.value).split("\n")
    assert lines == [str(problem) for problem in caught.value.problems]
    return lines
