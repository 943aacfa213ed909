"""What the bot's buttons carry: written and read back, and nothing else is taken for it."""

from __future__ import annotations

import pytest

from adapters.button_data import STOP, answer_data, read_answer
from pipeline.domain.messages import button_handle


@pytest.mark.parametrize("option", [0, 7, 99])
def test_an_answer_is_read_back_and_fits_into_any_platforms_button(option: int) -> None:
    data = answer_data("run_1:/ask:2", option)
    assert read_answer(data) == (button_handle("run_1:/ask:2"), option)
    assert len(data.encode()) <= 64


def test_a_place_beyond_what_the_platform_holds_is_no_answer() -> None:
    assert read_answer(answer_data("a", 100)) is None
    assert read_answer(answer_data("a", 100), digits=3) == (button_handle("a"), 100)
    assert read_answer(f"q:{button_handle('a')}:1000", digits=3) is None


@pytest.mark.parametrize(
    "data", ["", STOP, "q", "q::", "q:a:1", f"q:{'A' * 16}:1", f"q:{'a' * 16}:", f"q:{'a' * 16}:-1"]
)
def test_what_no_button_of_ours_carries_is_no_answer(data: str) -> None:
    assert read_answer(data) is None
    assert read_answer(f"q:{'a' * 16}:\u0661") is None
