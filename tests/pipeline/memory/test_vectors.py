"""The search among stored vectors takes one processor, however many there are.

What it finds is tested with memory: tests/end_to_end/test_memory.py. Covers: pipeline/memory/vectors.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.memory.vectors import nearest, packed

PROGRAM = """
import os, pathlib, sys, time
import numpy
from pipeline.memory.vectors import nearest, packed

def by_others():
    threads = [one for one in pathlib.Path("/proc/self/task").iterdir() if one.name != str(os.getpid())]
    return sum(int((one / "schedstat").read_text().split()[0]) for one in threads)

rows = [(number, packed([number % 7 + 1.0] * 384)) for number in range(4_000)]
before = -1
while before != (before := by_others()):
    time.sleep(0.05)  # numpy's threads are busy for a while after they have started
nearest([1.0] * 384, rows, limit=3)
print(by_others() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the kernel's account of the threads")
def test_a_search_among_thousands_of_vectors_leaves_the_other_cores_alone() -> None:
    here = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": here, "OPENBLAS_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) == 0


def test_the_nearest_come_first_and_those_of_another_length_not_at_all() -> None:
    rows = [(1, packed([0.0, 1.0])), (2, packed([1.0, 0.1])), (3, packed([1.0, 1.0])), (4, packed([1.0]))]
    found = nearest([2.0, 0.0], rows, limit=2)
    assert [number for number, _ in found] == [2, 3]
    assert found[0][1] == pytest.approx(0.995, abs=0.01)
    assert nearest([0.0, 0.0], rows, limit=2) == ()
