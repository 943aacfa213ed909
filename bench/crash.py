"""The kill run of tests/crash as figures: the kills, and the damage they caused."""

from __future__ import annotations

from bench.report import Report, scratch_folder
from tests.support.kill_run import LONGEST_LIFE_S, SHORTEST_LIFE_S, KillPlan, run_kills


async def run(*, kills: int, seed: int) -> Report:
    """Kill a gateway `kills` times while it answers."""
    plan = KillPlan(kills=kills, seed=seed, attempts=20)
    with scratch_folder() as folder:
        found = await run_kills(folder, plan)
    verdict = found.verdict
    counts = {
        "kill -9": plan.kills,
        "accepted": verdict.accepted,
        "lost": verdict.lost,
        "answered twice": verdict.answered_twice,
        "out of order": verdict.order_errors,
        "wrong answer": verdict.wrong_text,
        "duplicates sent": found.duplicates_sent,
        "turns interrupted and started again": found.turns_begun_again,
        "seconds": round(found.seconds),
    }
    return Report(
        bench="crash",
        title=f"crash: {plan.chats} chats talk while the gateway is killed (seed {seed})",
        head=("", "count"),
        rows=[(name, str(count)) for name, count in counts.items()],
        notes=(
            f"each process lives {SHORTEST_LIFE_S} to {LONGEST_LIFE_S} s; an answer takes 30 to 140 ms of it",
            f"counted from the clients' frames; SQLite's check of the file: {found.integrity}",
        ),
        figures=found.figures(),
    )
