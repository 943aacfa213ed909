"""Which file the embedded model answers with: named, or the larger one where the machine can run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.app.embedded_model import LARGER_CORES, LARGER_FREE_BYTES, embedded_model
from gateway.config import Settings, load
from gateway.models.manifest import CHAT, LARGER_CHAT
from gateway.runtime.machine import Machine

ENOUGH = Machine(free_bytes=LARGER_FREE_BYTES, cores=LARGER_CORES)


def settings_of(folder: Path, *overrides: str) -> Settings:
    return load(Path("/dev/null"), {}, [f"models.dir={folder}", *overrides])


def put_larger_into(folder: Path) -> None:
    """A file with the larger model's name and size, without its content on the disk."""
    with LARGER_CHAT.path(folder).open("wb") as file:
        file.truncate(LARGER_CHAT.size)


def test_the_small_model_answers_where_only_it_is_fetched_and_the_machine_is_not_asked(
    tmp_path: Path,
) -> None:
    def ask() -> Machine:
        raise AssertionError("the machine does not matter")

    chosen = embedded_model(settings_of(tmp_path), ask)

    assert (chosen.path, chosen.model) == (CHAT.path(tmp_path), CHAT)
    assert chosen.words() == "qwen2.5-coder-0.5b (auto: qwen2.5-coder-1.5b is not fetched)"


def test_the_larger_one_answers_where_it_is_fetched_and_the_machine_can_run_it(tmp_path: Path) -> None:
    put_larger_into(tmp_path)

    chosen = embedded_model(settings_of(tmp_path), lambda: ENOUGH)

    assert (chosen.path, chosen.model) == (LARGER_CHAT.path(tmp_path), LARGER_CHAT)
    assert chosen.words() == "qwen2.5-coder-1.5b (auto: 3.0 GB of memory free, 4 cores)"


@pytest.mark.parametrize(
    ("machine", "has"),
    [
        (
            Machine(free_bytes=LARGER_FREE_BYTES - 100_000_000, cores=LARGER_CORES),
            "2.9 GB of memory free, 4 cores",
        ),
        (Machine(free_bytes=LARGER_FREE_BYTES, cores=1), "3.0 GB of memory free, 1 core"),
    ],
)
def test_a_machine_that_is_too_small_keeps_the_small_one_and_says_what_is_lacking(
    tmp_path: Path, machine: Machine, has: str
) -> None:
    put_larger_into(tmp_path)

    chosen = embedded_model(settings_of(tmp_path), lambda: machine)

    assert chosen.model == CHAT
    assert chosen.reason == f"auto: {has}; qwen2.5-coder-1.5b needs 3 GB and 4 cores"


def test_a_half_fetched_file_is_not_taken(tmp_path: Path) -> None:
    LARGER_CHAT.path(tmp_path).write_bytes(b"GGUF")

    assert embedded_model(settings_of(tmp_path), lambda: ENOUGH).model == CHAT


@pytest.mark.parametrize(("name", "model"), [("0.5b", CHAT), ("1.5b", LARGER_CHAT)])
def test_a_named_model_is_taken_as_named(tmp_path: Path, name: str, model: object) -> None:
    put_larger_into(tmp_path)
    settings = settings_of(tmp_path, f"llm.local.model={name}")

    chosen = embedded_model(settings, lambda: Machine(free_bytes=0, cores=1))

    assert (chosen.model, chosen.reason) == (model, f'llm.local.model = "{name}"')


def test_a_file_of_the_operator_wins_over_both(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "llm.local.model_path=/m.gguf", "llm.local.model=1.5b")

    assert embedded_model(settings).words() == "m.gguf (llm.local.model_path)"
