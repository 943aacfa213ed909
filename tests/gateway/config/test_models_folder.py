"""Where the model files are when models.dir is absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config import load
from gateway.config.environment import models_folder


def test_a_folder_called_models_is_used_where_the_program_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()

    assert load(Path("/dev/null"), {}, []).models_path == Path("models")


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"XDG_DATA_HOME": "/srv/shares"}, Path("/srv/shares/parlour/models")),
        ({}, Path.home() / ".local/share/parlour/models"),
        ({"XDG_DATA_HOME": ""}, Path.home() / ".local/share/parlour/models"),
        ({"XDG_DATA_HOME": "relative"}, Path.home() / ".local/share/parlour/models"),
    ],
)
def test_elsewhere_the_users_own_data_folder_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], folder: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    assert models_folder(environ) == folder


def test_a_configured_folder_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()

    assert load(Path("/dev/null"), {}, ["models.dir=/srv/models"]).models_path == Path("/srv/models")
