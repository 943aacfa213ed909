"""`parlour init` offers the channels of plug-ins, and leaves a broken one out."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.cli.init.test_init import Typist, asked, files_in
from tests.support.channel_plugins import channel_plugins


@pytest.fixture(autouse=True)
def harbour(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    names = {"harbour": "demo_harbour:harbour", "pier": "demo_pier:x"}
    with channel_plugins(tmp_path_factory.mktemp("plug-ins") / "site", monkeypatch, **names):
        yield


async def test_a_channel_of_a_plug_in_is_asked_for_its_secret_and_written(tmp_path: Path) -> None:
    typist = Typist("web harbour", "the-key", "")
    assert await asked(tmp_path, typist, {}) == 0

    assert "  5  harbour" in typist.shown
    assert "harbour credentials: not checked: the channel offers no check" in typist.text
    assert (tmp_path / "secrets/harbour-key").read_text() == "the-key\n"
    channels = tomllib.loads((tmp_path / "parlour.toml").read_text())["channels"]
    assert channels["harbour"]["key"] == "file:secrets/harbour-key"


async def test_a_broken_plug_in_is_named_and_left_out(tmp_path: Path) -> None:
    typist = Typist("pier", "")
    assert await asked(tmp_path, typist, {}) == 0

    assert "channels.pier: its plug-in " in typist.text
    assert "It is left out." in typist.text
    assert files_in(tmp_path) == ["parlour.toml"]
