"""Random schedules of bursts, voice notes, edits, presses and deaths of the process, on virtual time."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from tests.properties.burst_world import World

CHATS = 42
_RULES = tuple(itertools.product(("merge", "each"), ("steer", "queue", "interrupt")))


@pytest.mark.soak
async def test_every_message_is_part_of_exactly_one_turn_in_order(tmp_path: Path, soak: bool) -> None:
    """252 schedules, 42 in each gateway; 40 times as many under `make soak`."""
    total = {"turns": 0, "joined": 0, "steered": 0}
    deaths = 0
    for seed in range(240 if soak else 6):
        rng = random.Random(seed)
        merge, busy = _RULES[seed % len(_RULES)]
        rules = (f"turn.bursts={merge}", f"turn.while_busy={busy}")
        world = World(tmp_path / str(seed), rng, CHATS, *rules)
        try:
            await world.run(deaths=rng.randint(0, 3))
            counts = await world.judge()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {merge}, {busy}: {error}") from error
        deaths += world.deaths
        for key, count in counts.items():
            total[key] += count
        if merge == "each" and busy != "steer":
            assert counts["joined"] == 0
    # The schedules reach what they are about.
    assert total["joined"] > 25, total
    assert total["steered"] > 2, total
    assert deaths >= 5
