"""Which store the settings give, and that none of another one is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.app.store import build_store
from gateway.config import load
from gateway.config.problems import ConfigurationProblems
from gateway.storage.memory import MemoryStore
from gateway.storage.postgres import PostgresStore
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.errors import ConfigurationError

_ON_POSTGRES = ['storage.kind="postgres"', 'storage.url="env:DATABASE_OF_THE_TEST"']
_URL = {"DATABASE_OF_THE_TEST": "postgresql://bot:hunter2@db.example.org/parlour"}


def test_the_kind_chooses_the_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    assert isinstance(build_store(load(None, {}, []), path), SqliteStore)
    assert isinstance(build_store(load(None, {}, ['storage.kind="memory"']), path), MemoryStore)
    assert isinstance(build_store(load(None, _URL, _ON_POSTGRES), path), PostgresStore)
    assert not path.exists()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (_ON_POSTGRES[:1], 'storage.url: is missing, as storage.kind is "postgres"'),
        (_ON_POSTGRES[1:], "storage.url: has no effect, as storage.kind is not postgres"),
        (_ON_POSTGRES, "the environment variable DATABASE_OF_THE_TEST is not set"),
    ],
)
def test_settings_that_do_not_fit_are_refused_in_words(settings: list[str], words: str) -> None:
    environ = {} if settings == _ON_POSTGRES else _URL
    with pytest.raises(ConfigurationProblems) as refused:
        load(None, environ, settings)
    assert words in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_url_of_another_kind_is_refused_without_its_password(tmp_path: Path) -> None:
    settings = load(None, {"DATABASE_OF_THE_TEST": "mysql://bot:hunter2@db/parlour"}, _ON_POSTGRES)
    with pytest.raises(
        ConfigurationError, match=r"^storage\.url: .* must begin with postgresql://"
    ) as refused:
        build_store(settings, tmp_path / "store.db")
    assert "hunter2" not in str(refused.value)
