"""The rules of this project that no linter checks."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.sources import (
    PACKAGES,
    ROOT,
    imported_names,
    kept,
    python_files,
    relative,
    source,
    statements,
    tree,
)

MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 70
SAME_PORTS = {
    "Clock": ["pipeline/domain/clock.py", "voice/clock.py"],
    "Spawn": ["pipeline/domain/background.py", "voice/streaming/partials.py"],
}
"""Ports that voice has again, as it imports no other package."""
_CLASS = r"[A-Z]\w*[a-z]\w*"
CLASSES_NAMED = re.compile(
    rf"\b(?:Raises?|See|Implements)((?:,? (?:or |and )?`?{_CLASS}`?)+)|`([A-Z][a-z]+[A-Z]\w*)`"
)
"""Where a docstring names classes."""
KIND_NAMES = {"utils", "util", "helpers", "common", "base", "misc", "manager"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@kept
def functions(path: Path) -> tuple[Function, ...]:
    return tuple(node for node in statements(path) if isinstance(node, Function))


def test_every_package_tells_type_checkers_that_it_is_typed() -> None:
    assert [name for name in PACKAGES if not (ROOT / name / "py.typed").exists()] == []


def test_every_module_says_what_it_is() -> None:
    assert [
        relative(p) for p in python_files(*PACKAGES, "bench", "examples") if not ast.get_docstring(tree(p))
    ] == []


def test_no_module_is_longer_than_a_person_reads_at_once() -> None:
    lengths = {
        relative(path): len(source(path).splitlines())
        for path in python_files(*PACKAGES, "tests", "bench", "evals", "examples")
    }

    assert {name: count for name, count in lengths.items() if count > MAX_MODULE_LINES} == {}


def test_functions_are_found_wherever_they_are(tmp_path: Path) -> None:
    text = "class A:\n if b:\n  def c(): ...\n else:\n  async def d(): (lambda: 1)()\n"
    text += "try:\n def e():\n  def f(): ...\nexcept E:\n def g(): ...\nfinally:\n def h(): ...\n"
    text += "match 1:\n case 1:\n  with i:\n   def j(): ...\n"
    (file := tmp_path / "some.py").write_text(text, "utf-8")
    assert {function.name for function in functions(file)} == set("cdefghj")


def test_no_function_is_longer_than_a_screen() -> None:
    long = {
        f"{relative(path)}: {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path in python_files(*PACKAGES, "tests", "bench", "evals", "examples")
        for node in functions(path)
        if (node.end_lineno or node.lineno) - node.lineno + 1 > MAX_FUNCTION_LINES
    }

    assert long == {}


def test_no_module_is_named_for_a_kind_of_code() -> None:
    assert [relative(path) for path in python_files(*PACKAGES) if path.stem in KIND_NAMES] == []


def test_a_class_name_is_used_once() -> None:
    places: dict[str, list[str]] = {}
    for path in python_files(*PACKAGES):
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(relative(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == SAME_PORTS


def names_in(node: ast.AST) -> set[str]:
    """What a statement defines."""
    match node:
        case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
    return set()


def classes_named(text: str) -> set[str]:
    """The classes that a docstring says to exist."""
    found = CLASSES_NAMED.finditer(" ".join(text.split()))
    return {name for match in found for name in re.findall(_CLASS, match[1] or match[2])}


def test_a_docstring_names_classes_that_exist() -> None:
    assert classes_named(
        "Raises ValueError, `No` or\n  Gone. See `Also.this`, and a `TwoWords`; raises x.Y"
    ) == {*("ValueError", "No", "Gone", "Also", "TwoWords")}
    nodes = [(path, node) for path in python_files(*PACKAGES) for node in statements(path)]
    imported = {name.rpartition(".")[2] for path in python_files(*PACKAGES) for name in imported_names(path)}
    known = set(dir(builtins)).union(imported, *(names_in(node) for _, node in nodes))
    unknown = {
        f"{relative(path)}:{node.lineno}": missing
        for path, node in nodes
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and (missing := classes_named(node.value.value) - known)
    }
    assert unknown == {}


def test_every_test_folder_is_a_package() -> None:
    folders = {path.parent for path in python_files("tests")}

    assert [relative(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_every_test_can_fail() -> None:
    toothless = [
        f"{relative(path)}: {node.name}"
        for path in python_files("tests", "examples")
        if path.name.startswith("test_") or path.parent.name == "contract"
        for asserting in [_asserting(path)]
        for node in functions(path)
        if node.name.startswith("test_") and not _can_fail(node, asserting)
    ]

    assert toothless == []


def _asserting(path: Path) -> set[str]:
    """Names of the file's functions that assert something, directly or through one another."""
    found: set[str] = set()
    while True:
        more = {node.name for node in functions(path) if _can_fail(node, found)}
        if more == found:
            return found
        found = more


def _can_fail(function: Function, asserting: set[str]) -> bool:
    """Whether it asserts, expects an exception, or calls something that does or is named as a check."""
    asserts, called = _acts(function)
    return asserts or bool((called & asserting) - {function.name})


@kept
def _acts(function: Function) -> tuple[bool, frozenset[str]]:
    """Whether it can fail by itself, and the names of what it calls."""
    names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True, frozenset()
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            called = node.func.id if isinstance(node.func, ast.Name) else called
            if called in ("raises", "expect") or called.startswith(("assert_", "expect_", "check_", "to_")):
                return True, frozenset()
            names.add(called)
    return False, frozenset(names)


def test_no_suppression_is_without_its_reason() -> None:
    bare = [
        f"{relative(path)}:{number}"
        for path in python_files(*PACKAGES, "tests", "bench", "evals", "examples")
        for number, line in enumerate(source(path).splitlines(), start=1)
        if _is_bare_suppression(line)
    ]

    assert bare == []


def _is_bare_suppression(line: str) -> bool:
    for mark in ("# no" + "qa", "# type: " + "ignore"):
        _, found, rest = line.partition(mark)
        if found:
            code = rest.lstrip(": [")[:1].isalpha()
            reason = " - " in rest or "# " in rest
            return not (code and reason)
    return False


def test_nothing_names_the_machines_that_it_was_written_on() -> None:
    # Built from pieces, so that this file does not find itself.
    words = ("/wo" + "rk/", "/tmp" + "/w/", "work" + "place", "Co-" + "Authored-By")
    texts = [
        path
        for path in [*python_files(*PACKAGES, "tests", "bench", "evals", "examples"), *_texts()]
        if any(word in source(path) for word in words)
    ]

    assert [relative(path) for path in texts] == []


def _texts() -> Iterator[Path]:
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "deploy/**/*",
        "tools/*",
        "Makefile",
        "pyproject.toml",
        ".ci/*",
        ".*.yaml",
    ):
        yield from (path for path in sorted(ROOT.glob(pattern)) if path.is_file())


def test_every_file_for_deployment_is_explained_somewhere() -> None:
    explained = "\n".join(
        path.read_text(encoding="utf-8") for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    )
    files = [
        path for path in (ROOT / "deploy").rglob("*") if path.is_file() and path.suffix != ".dockerignore"
    ]

    assert files
    unknown = [
        relative(path)
        for path in files
        # A file, or the folder that it is in, as in `deploy/monitoring/`.
        if not any(
            f"{relative(place)}{mark}" in explained for place, mark in ((path, ""), (path.parent, "/"))
        )
    ]
    assert unknown == []
