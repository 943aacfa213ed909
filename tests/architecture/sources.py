"""What the architecture tests look at: the sources as syntax trees, and the documents as text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).parents[2]
PACKAGES = ("adapters", "gateway", "pipeline", "voice")
_UNCHECKED = {".git", ".venv", "__pycache__", "data", "models", "build", "dist", "node_modules"}


K = TypeVar("K")
T = TypeVar("T")
_FORGETTERS: list[Callable[[], None]] = []


def kept(function: Callable[[K], T]) -> Callable[[K], T]:
    """The function, called once for each argument until `forget`: a file, or a part of its tree."""
    cached = cache(function)
    _FORGETTERS.append(cached.cache_clear)
    return cached


def forget() -> None:
    """Release what `kept` functions gave."""
    for clear in _FORGETTERS:
        clear()


def python_files(*folders: str) -> Iterator[Path]:
    """Every Python file below the named folders of the project, in order."""
    for folder in folders:
        yield from _python_files(folder)


@cache
def _python_files(folder: str) -> tuple[Path, ...]:
    return tuple(path for path in sorted((ROOT / folder).rglob("*.py")) if "__pycache__" not in path.parts)


def documents() -> list[Path]:
    """Every Markdown file of the project."""
    return [
        path
        for path in sorted(ROOT.rglob("*.md"))
        if not any(part in _UNCHECKED or part.startswith(".") for part in path.relative_to(ROOT).parts[:-1])
    ]


@kept
def source(path: Path) -> str:
    """The file's text."""
    return path.read_text(encoding="utf-8")


@kept
def tree(path: Path) -> ast.Module:
    """The file's syntax tree."""
    return ast.parse(source(path), filename=str(path))


_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
"""Where statements are."""


@kept
def statements(path: Path) -> tuple[ast.AST, ...]:
    """The statements of the file's syntax tree, also those inside of others. Without expressions, which are
    most of a tree: to go through all of them takes seconds."""
    found: list[ast.AST] = []
    inner: list[ast.AST] = [tree(path)]
    while inner:
        node = inner.pop()
        found.append(node)
        for name in _BODIES:
            part = getattr(node, name, ())
            inner += part if isinstance(part, list) else ()  # not the expression of a lambda
    return tuple(found)


def module_name(path: Path) -> str:
    """`gateway.storage.ports` for the file of that module; a package's name for its `__init__`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


_IMPORTING = ("import_module", "__import__")


@cache
def imported_names(path: Path) -> frozenset[str]:
    """The dotted names that a file imports anywhere in it; `from a import b` gives `a` and `a.b`.

    A call of `importlib.import_module` with a fixed name counts: late is not secret.
    """
    names: set[str] = set()
    calls = any(name in source(path) for name in _IMPORTING)
    for node in ast.walk(tree(path)) if calls else statements(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and _called(node) in _IMPORTING:
            values = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            names |= {value for value in values if isinstance(value, str)}
    return frozenset(names)


def _called(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def relative(path: Path) -> str:
    """The path from the project's root, for messages."""
    return path.relative_to(ROOT).as_posix()
