"""Compare a run of an eval with the recorded one: evals/recorded/NAME.json holds its cases and its misses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

RECORDED = Path(__file__).with_name("recorded")


def difference(name: str, cases: int, wrong: Sequence[str]) -> str:
    """What differs from the recorded run: misses that are new, and those that are gone."""
    file = RECORDED / f"{name}.json"
    if not file.exists():
        return f"No recorded run in evals/recorded/{file.name}."
    before = json.loads(file.read_text(encoding="utf-8"))
    lines = [
        f"Recorded run: {before['right']} of {before['cases']} right; now {cases - len(wrong)} of {cases}."
    ]
    lines += [f"  newly wrong: {text}" for text in wrong if text not in before["wrong"]]
    lines += [f"  no longer wrong: {text}" for text in before["wrong"] if text not in wrong]
    return "\n".join(lines)


def record(name: str, cases: int, wrong: Sequence[str]) -> None:
    """Keep a run as the one to compare with."""
    RECORDED.mkdir(exist_ok=True)
    kept = {"cases": cases, "right": cases - len(wrong), "wrong": list(wrong)}
    text = json.dumps(kept, ensure_ascii=False, indent=1) + "\n"
    (RECORDED / f"{name}.json").write_text(text, encoding="utf-8")
