"""The faults that `make mutate` puts into a module: which there are, and which are picked."""

from __future__ import annotations

import ast

import pytest

from tests.support.tables import each
from tools.mutants import mutants, picked

MODULE = '''
"""Numbers."""

__all__ = ["True"]


def rest(whole: int, part: int = 1) -> int:
    """Never below 0."""
    if whole < part or not whole:
        return 0
    return whole - part


class Sums:
    def add(self, value):
        if value in self.seen and value > 0:
            self.total += value
'''


def changed(line: str) -> set[str]:
    """What becomes of one line inside a loop of a function."""
    source = f"def f():\n    for i in x:\n        {line}\n"
    return {mutant.applied(source).splitlines()[2].strip() for mutant in mutants(source, ("_log", "reach"))}


@each(
    "line, expected",
    [
        ("return a < b", {"return (a >= b)", "return (a <= b)", "return None"}),
        ("a = b == c", {"a = (b != c)"}),
        ("a = b is not c", {"a = (b is c)"}),
        ("a = b in c", {"a = (b not in c)"}),
        ("a = b and c", {"a = (b or c)"}),
        ("a = not b", {"a = (b)"}),
        ("a = b - c", {"a = (b + c)"}),
        ("a += b", {"a -= b"}),
        ("a = True", {"a = (False)"}),
        ("a = [0, 1.0, 2]", {"a = [(1), 1.0, 2]", "a = [0, (0.0), 2]"}),
        ("return a", {"return None"}),
        ("a.append(b)", {"pass"}),
        ("await a.append(b)", {"pass"}),
        ("break", {"continue"}),
        ("continue", {"break"}),
        ("if a: b = c", {"if (not a): b = c"}),
        ("a = b if c else d", {"a = b if (not c) else d"}),
        ("a = '…' if b == c else d", {"a = '…' if (b != c) else d"}),
    ],
)
def test_every_kind_of_fault(line: str, expected: set[str]) -> None:
    assert changed(line) == expected


@each(
    "line",
    [
        "'a text'",
        "a: Literal[True]",
        "return None",
        "a = f'{b - c} {b < c}'",
        "a = b + 'a text'",
        "__all__ = [True]",
        "_log.info('a', extra={'b': 1})",
        "await self._crash_labels.reach(1)",
        "a = zip(b, c, strict=True)",
    ],
)
def test_what_no_test_should_notice_is_left_alone(line: str) -> None:
    assert changed(line) == set()


@pytest.mark.parametrize(
    "source",
    [
        "if TYPE_CHECKING:\n    a = 1\n",
        "@dataclass(frozen=True)\nclass A(B, final=True):\n    c: int\n",
        "match a:\n    case 1 | True:\n        b = c\n",
        "@overload\ndef f(a: int = 0) -> int: ...\n",
    ],
)
def test_what_only_declares_is_left_alone(source: str) -> None:
    assert mutants(source) == ()


def test_a_fault_is_reported_with_its_place_and_its_line_where_it_is_short() -> None:
    reported = [f"{mutant.scope}:{mutant.line}  {mutant}" for mutant in mutants(MODULE)]

    assert "rest:9  if whole < part or not whole: -> if whole <= part or not whole:" in reported
    assert "Sums.add:16  value in self.seen and value > 0 -> value in self.seen or value > 0" in reported


def test_a_long_piece_is_shown_around_what_changes() -> None:
    names = " and ".join(f"name_{number}" for number in range(20))
    shown = [str(mutant) for mutant in mutants(f"a = {names} < b\n")]

    assert len(shown) == 3
    assert all(text.startswith("…") or " or " in text for text in shown)


def test_every_fault_leaves_a_program_with_the_same_lines_elsewhere() -> None:
    for mutant in mutants(MODULE):
        lines = mutant.applied(MODULE).splitlines()
        assert ast.parse("\n".join(lines)).body
        assert [n for n, line in enumerate(MODULE.splitlines(), 1) if lines[n - 1] != line] == [mutant.line]


def test_the_same_code_gives_the_same_faults_and_another_seed_others() -> None:
    assert picked(MODULE, 4, seed=1) == picked(MODULE, 4, seed=1)
    assert picked(MODULE, 4, seed=1) != picked(MODULE, 4, seed=2)
    assert set(picked(MODULE, 4, seed=1)) < set(mutants(MODULE))


def test_lines_above_and_a_new_import_change_nothing_that_is_picked() -> None:
    moved = picked("import a.b\n\n" + MODULE, 4, seed=1)

    assert [str(mutant) for mutant in moved] == [str(mutant) for mutant in picked(MODULE, 4, seed=1)]
