"""What the recogniser's program decides before it loads the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from voice.errors import TranscriberUnavailable
from voice.transcription.device import chosen_device
from voice.transcription.recognizer_main import address_space_bytes, chosen_engine, warm

GIGABYTE = 1024**3


class Loaded:
    """In the place of a model."""

    def __init__(self, *, first_run_is_slow: bool) -> None:
        self.first_run_is_slow = first_run_is_slow
        self.runs = 0

    def warm_up(self) -> None:
        self.runs += 1


def test_the_processor_or_the_gpu_is_loaded_once_where_it_works() -> None:
    loaded: list[str] = []
    chosen_engine("cpu", loaded.append)
    chosen_engine("auto", loaded.append)
    assert loaded == ["cpu", chosen_device("auto")]


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_a_gpu_that_cannot_be_used_is_the_processors_turn_only_where_no_one_asked_for_it(
    device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def load(where: str) -> str:
        if where == "cuda":
            raise TranscriberUnavailable("libcublas is not found.")
        return where

    if device == "auto":
        assert chosen_engine("auto", load, found="cuda") == "cpu"
        assert "libcublas is not found" in capsys.readouterr().err
    else:
        with pytest.raises(TranscriberUnavailable, match="libcublas"):
            chosen_engine("cuda", load, found="cuda")


def test_a_model_runs_before_the_first_note_only_where_that_saves_time() -> None:
    slow, ready = (Loaded(first_run_is_slow=slow) for slow in (True, False))
    warm(slow)
    warm(ready)
    assert (slow.runs, ready.runs) == (1, 0)


def test_a_larger_model_gets_more_room(tmp_path: Path) -> None:
    assert address_space_bytes(tmp_path) == 2 * GIGABYTE
    with (tmp_path / "model.bin").open("wb") as model:
        model.truncate(145_217_532)
    assert address_space_bytes(tmp_path) == 2 * GIGABYTE
    with (tmp_path / "model.bin").open("wb") as model:
        model.truncate(3 * GIGABYTE)
    assert address_space_bytes(tmp_path) == 13 * GIGABYTE
