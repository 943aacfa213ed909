"""The diagram in docs/architecture.md shows the imports as they are: no arrow missing, none invented."""

from __future__ import annotations

import re

from tests.architecture.sources import PACKAGES, ROOT, imported_names, module_name, python_files

TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)
_NODE = re.compile(r'^\s*(\w+)\["([a-z_.]+)"\]\s*$', re.MULTILINE)
_ARROW = re.compile(r"^\s*(\w+) --> (\w+(?: & \w+)*)\s*$", re.MULTILINE)

Arrow = tuple[str, str]


def drawn() -> tuple[set[str], set[Arrow]]:
    """The diagram's parts by their dotted names, and its arrows."""
    (block,) = _BLOCK.findall(TEXT)
    names = dict(_NODE.findall(block))
    arrows = {
        (names[source], names[target])
        for source, targets in _ARROW.findall(block)
        for target in targets.split(" & ")
    }
    return set(names.values()), arrows


def part_of(module: str, parts: set[str]) -> str | None:
    """The most specific part of the diagram that `module` belongs to."""
    matching = [part for part in parts if module == part or module.startswith(part + ".")]
    return max(matching, key=len, default=None)


def test_every_module_belongs_to_a_part_of_the_diagram() -> None:
    parts, _ = drawn()
    homeless = [
        module_name(path)
        for path in python_files(*PACKAGES)
        if path.name != "__init__.py" and part_of(module_name(path), parts) is None
    ]

    assert homeless == []


def test_the_arrows_are_the_imports() -> None:
    parts, arrows = drawn()
    real: set[Arrow] = set()
    for path in python_files(*PACKAGES):
        source = part_of(module_name(path), parts)
        targets = {part_of(name, parts) for name in imported_names(path)}
        real |= {(source, target) for target in targets if source and target and target != source}

    assert real - arrows == set(), "imports that the diagram does not show"
    assert arrows - real == set(), "arrows that no import is behind"
