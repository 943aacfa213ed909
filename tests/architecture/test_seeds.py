"""docs/seeds.md is true: its modules and tests exist, tests cover modules, rows can be reached."""

from __future__ import annotations

import ast
import re
from argparse import ArgumentParser
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_args

from gateway.cli.main import _parser
from gateway.config.catalog import SETTINGS
from pipeline.domain.command_types import CommandName
from tests.architecture.sources import ROOT, imported_names, tree
from tests.support.tables import each

_ROW = re.compile(r"^\| *(\d+\.\d+) *" + r"\| *(.*?) *" * 4 + r"\|$", re.MULTILINE)
_QUOTED = re.compile(r"`([^`]+)`")
_ABSENT = re.compile(r"not (yet \(later: [A-Za-z ]+\)|planned \([^)]+\))")
_ENGINE = re.compile(r"engine only \(later: [a-z ]+\)")
_INPUTS = frozenset(
    {"every message", "every voice note", "live speech on the page", "web page", "Telegram, Slack, Discord"}
)
_NONE = "\N{EN DASH}"
_COVERS = re.compile(r"^Covers: (.+?)\.$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One statement of a seed."""

    number: str
    module: str
    test: str
    reached: str

    @property
    def built(self) -> bool:
        """Whether there is a module for it."""
        return not _ABSENT.fullmatch(self.module)


def rows() -> list[Row]:
    text = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
    return [
        Row(number=number, module=module, test=test, reached=reached)
        for number, _, module, test, reached in _ROW.findall(text)
    ]


BUILT = [row for row in rows() if row.built]


def test_the_rows_are_numbered_without_a_gap() -> None:
    numbers = [tuple(int(part) for part in row.number.split(".")) for row in rows()]

    assert len(numbers) >= 200
    assert sorted(numbers) == numbers
    for seed in range(5):
        assert [item for section, item in numbers if section == seed] == list(
            range(1, sum(section == seed for section, _ in numbers) + 1)
        )


def test_what_is_not_built_names_no_test_and_no_way_to_it() -> None:
    assert [row.number for row in rows() if not row.built and {row.test, row.reached} != {_NONE}] == []


def test_the_rows_are_counted_right() -> None:
    text = " ".join((ROOT / "docs" / "seeds.md").read_text(encoding="utf-8").split())
    engine = sum(bool(_ENGINE.fullmatch(row.reached)) for row in BUILT)

    counted = f"Of the {len(rows())} statements, {len(BUILT) - engine} are built and can be reached"
    assert f"{counted}, {engine} are built in the engine only." in text


@each("row", BUILT)
def test_each_module_is_covered_by_a_test_that_the_row_names(row: Row) -> None:
    modules, tests = _QUOTED.findall(row.module), _QUOTED.findall(row.test)

    assert modules
    covered = frozenset().union(*(_covered(ROOT / test) for test in tests))
    assert [module for module in modules if module not in covered] == []


@each("row", BUILT)
def test_each_row_says_how_it_is_reached(row: Row) -> None:
    quoted = _QUOTED.findall(row.reached)
    known = row.reached in _INPUTS or _ENGINE.fullmatch(row.reached) is not None

    assert known or quoted, row.reached
    assert [name for name in quoted if not _is_reachable(name)] == []


def _is_reachable(name: str) -> bool:
    """Whether a name in the last column is a setting, a chat command, a page of the server or a command."""
    if name.startswith("/"):
        return name.removeprefix("/") in get_args(CommandName)
    if name.startswith("GET /"):
        return name == "GET /metrics"
    program, *arguments = name.split()
    if program != "parlour":
        return name in SETTINGS
    try:
        _program().parse_args(arguments)
    except SystemExit:
        return False
    return True


@cache
def _program() -> ArgumentParser:
    return _parser()


@cache
def _covered(test: Path) -> frozenset[str]:
    """The files of ours that a test imports, through a package's re-exports too, or that its docstring lists
    after "Covers:" because it reaches them through the running gateway."""
    names = imported_names(test)
    for name in tuple(names):
        package, _, exported = name.rpartition(".")
        front = ROOT / package.replace(".", "/") / "__init__.py"
        if front.exists():
            names |= _re_exported(front, exported)
    files = {f"{name.replace('.', '/')}.py" for name in names}
    for listed in _COVERS.findall(ast.get_docstring(tree(test)) or ""):
        files |= set(re.split(r",\s*", listed))
    return frozenset(file for file in files if (ROOT / file).exists())


def _re_exported(front: Path, name: str) -> set[str]:
    return {
        str(node.module)
        for node in tree(front).body
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]
    }
