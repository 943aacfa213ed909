"""The simulation of a cluster: its costs have sources, its arithmetic is right, and the seed decides."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import simulate_cluster
from bench.simulate_costs import Plan, read_costs
from bench.simulate_events import simulate
from bench.simulate_load import (
    DATABASE,
    EDGES,
    WORKERS,
    Part,
    best_edges,
    first_full,
    parts,
    sensitivities,
)
from bench.simulate_plot import plot

SMALL = Plan(processes=4, edges=1, threads=1_000, model_s=2.0, slots=8, database_cores=2)


def part_of(plan: Plan, name: str) -> Part:
    (one,) = [part for part in parts(plan) if part.name == name]
    return one


def test_every_cost_says_where_it_was_measured(tmp_path: Path) -> None:
    costs = read_costs()
    assert costs["turn_worker"] == pytest.approx(2.7e-3)
    assert all(cost.source and cost.what and cost.seconds > 0 for cost in costs.by_name.values())

    wrong = tmp_path / "costs.toml"
    for key, words in (("unit", "unit"), ("source", "no source")):
        entry = {"value": 1, "unit": "µs", "what": "w", "source": "s"} | {key: ""}
        lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in entry.items()]
        wrong.write_text("[costs.one]\n" + "\n".join(lines), encoding="utf-8")
        with pytest.raises(ValueError, match=words):
            read_costs(wrong)


def test_a_part_is_full_where_its_time_is_used_up() -> None:
    part = Part(name="p", unit="cores", has=2.0, always=0.5, each_turn=0.01)

    assert part.most == pytest.approx(150)
    assert part.used(75) == pytest.approx(0.625)
    assert part.used(part.most) == pytest.approx(1)


def test_an_edge_pays_for_receiving_tokens_and_wakes() -> None:
    costs = SMALL.costs
    expected = costs["accept_edge"] + costs["platform_edge"] + 150 * costs["token_redis_edge"]

    to_all = part_of(replace(SMALL, wakes_to_all=True), EDGES)
    assert to_all.each_turn == pytest.approx(expected + costs["signal_redis_receiver"])
    chosen = part_of(SMALL, EDGES)
    assert chosen.each_turn == pytest.approx(expected + 3 * costs["choice_edge"])
    assert chosen.always == pytest.approx(3 * costs["signal_redis_receiver"])


def test_wakes_to_all_cost_the_database_a_refusal_for_each_worker_but_one() -> None:
    to_all = replace(SMALL, wakes_to_all=True)
    many, one = part_of(to_all, DATABASE).each_turn, part_of(SMALL, DATABASE).each_turn

    assert many - one == pytest.approx((2 - SMALL.astray) * SMALL.costs["refused_database"])
    assert part_of(SMALL, WORKERS).each_turn < part_of(to_all, WORKERS).each_turn


def test_many_workers_together_look_no_more_often_than_some() -> None:
    few, many = replace(SMALL, processes=6), replace(SMALL, processes=60)

    assert few.looks == pytest.approx(5 / few.look_s)
    assert many.looks == many.looks_a_second


def test_over_postgres_the_signals_are_the_databases_work_and_the_bus_is_never_full() -> None:
    over = replace(SMALL, bus="postgres")

    assert part_of(over, DATABASE).each_turn > part_of(SMALL, DATABASE).each_turn
    assert math.isinf(part_of(over, "server of the bus").most)


def test_the_best_number_of_edges_lets_more_through_than_its_neighbours() -> None:
    best = best_edges(replace(SMALL, processes=20))

    for edges in (best.edges - 1, best.edges + 1):
        assert first_full(replace(best, edges=edges)).most <= first_full(best).most


def test_a_cost_of_the_part_that_is_full_moves_the_load_and_others_do_not() -> None:
    by_name = {one.name: one for one in sensitivities(SMALL)}
    most = first_full(SMALL).most
    assert first_full(SMALL).name == "turns at once"
    assert by_name["turns at once of a worker"].halved[1] == pytest.approx(most / 2)
    assert by_name["beat_database"].doubled[1] == pytest.approx(most)
    assert set(by_name) > set(SMALL.costs.by_name)


def test_the_same_seed_gives_the_same_run_and_another_one_does_not() -> None:
    runs = [simulate(SMALL, turns_per_s=5, seconds=20, seed=seed) for seed in (1, 1, 2)]

    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_below_the_limit_turns_begin_at_once_and_above_it_they_wait() -> None:
    most = first_full(SMALL).most
    below, above = (simulate(SMALL, turns_per_s=most * share, seconds=30, kill=False) for share in (0.5, 1.5))

    assert below.started == pytest.approx(below.offered, rel=0.25)
    assert below.start_p50 < 0.1
    assert below.waiting == 0
    assert above.started < 1.2 * most
    assert above.waiting > 20
    assert above.start_p99 > 10 * below.start_p99


def test_turns_of_a_killed_worker_begin_again_after_its_time_to_live() -> None:
    run = simulate(replace(SMALL, model_s=8.0), turns_per_s=2, seconds=40)

    assert run.taken_over > 0
    # Its last report is up to a beat old, and others look once a second.
    assert SMALL.ttl_s - SMALL.beat_s <= run.takeover_p50 <= SMALL.ttl_s + SMALL.look_s + 1


async def test_the_report_names_what_is_full_first_and_draws_the_picture(tmp_path: Path) -> None:
    picture = tmp_path / "scaling.svg"
    report = await simulate_cluster.run(picture=picture, plan=replace(SMALL, processes=6), seconds=6)

    last = json.loads(report.text().splitlines()[-1])
    assert last["bench"] == "scaling"
    assert last["breaks_first"] in {part.name for part in parts(SMALL)}
    low, high = last["breaks_at_per_s_varied"]
    assert low <= last["breaks_at_per_s"] <= high
    root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    lines = [one.get("points") for one in root.iter() if one.tag.endswith("polyline")]
    assert len(lines) == 5


def test_a_picture_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="two numbers of processes"):
        plot([1], {"a": [1.0]}, {}, title="none")
