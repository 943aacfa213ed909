"""The documents speak of things that exist."""

from __future__ import annotations

import ast
import re

from gateway import __version__
from gateway.runtime.cluster_figures import ClusterFigures
from gateway.runtime.metrics import Telemetry
from gateway.storage.sqlite.migration_steps import MIGRATIONS
from pipeline.domain.clock import ManualClock
from tests.architecture.sources import PACKAGES, ROOT, documents, python_files, relative, statements, tree

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PATH = re.compile(
    r"`((?:adapters|gateway|pipeline|voice|tests|docs|deploy|examples|tools|bench|evals)/[^`\s*]+)`"
)
_CLASS_NAME = re.compile(r"`([A-Z][a-z]+(?:[A-Z][a-z]*)*)`")
_ROOM = re.compile(r"^\| `([a-z/0-9]+/)` \|.*\| ([^|]*) \|$", re.MULTILINE)
ADR_PARTS = ("## Context", "## Decision", "## Consequences")
_MAX_ADR_WORDS = 700


def anchor(heading: str) -> str:
    """A heading's anchor, as code hosts make it."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


def test_every_relative_link_leads_somewhere() -> None:
    broken = []
    for path in documents():
        for target in _LINK.findall(path.read_text(encoding="utf-8")):
            file, _, fragment = target.partition("#")
            if "://" in target or target.startswith("mailto:"):
                continue
            there = (path.parent / file).resolve() if file else path
            headings = re.findall(r"^#+ (.*)$", there.read_text("utf-8"), re.MULTILINE) if fragment else []
            if not there.exists() or (fragment and fragment not in map(anchor, headings)):
                broken.append(f"{relative(path)}: {target}")

    assert broken == []


def test_every_path_in_the_documents_exists() -> None:
    missing = {
        f"{relative(path)}: {name}"
        for path in documents()
        for name in _PATH.findall(path.read_text(encoding="utf-8"))
        if not (ROOT / name.split("::")[0]).exists()
    }

    assert missing == set()


def class_names() -> set[str]:
    return {
        node.name
        for path in python_files(*PACKAGES)
        for node in statements(path)
        if isinstance(node, ast.ClassDef)
    }


def type_aliases() -> set[str]:
    return {
        target.id
        for path in python_files(*PACKAGES)
        for node in tree(path).body
        for target in _assigned(node)
        if isinstance(target, ast.Name)
    }


def _assigned(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.AnnAssign):
        return [node.target]
    return node.targets if isinstance(node, ast.Assign) else []


def test_every_type_in_the_glossary_exists() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    named = set(_CLASS_NAME.findall(text))

    assert len(named) > 20
    assert named - class_names() - type_aliases() == set()


def test_the_glossary_is_in_order_and_has_no_word_twice() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = [word.lower() for word in re.findall(r"^\| \*\*(.+?)\*\*", text, re.MULTILINE)]

    assert len(words) > 40
    assert words == sorted(words)
    assert len(set(words)) == len(words)


def test_every_metric_is_explained_and_no_other() -> None:
    text = (ROOT / "docs" / "guides" / "operate.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| `(parlour_\w+)` \|", text, re.MULTILINE))
    telemetry = Telemetry(ManualClock())
    telemetry.watch_channels(tuple)
    telemetry.watch_cluster(
        lambda: ClusterFigures(unowned=0, beat_age_s=0.0, format=1, format_waiting=0, room=1)
    )
    families = telemetry.registry.collect()
    exposed = {f"{family.name}_total" if family.type == "counter" else family.name for family in families}

    assert explained == exposed


def test_every_decision_is_one_page_with_its_parts() -> None:
    pages = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))

    assert [page.name[:4] for page in pages] == [f"{number:04}" for number in range(1, len(pages) + 1)]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert [part for part in ADR_PARTS if part not in text] == [], page.name
        assert len(text.split()) <= _MAX_ADR_WORDS, page.name


def test_the_decisions_are_listed() -> None:
    index = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")

    assert [page.name for page in (ROOT / "docs" / "adr").glob("[0-9]*.md") if page.name not in index] == []


def test_the_changelog_speaks_of_this_version() -> None:
    assert __version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_changelog_names_the_version_of_the_data_folder() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert re.findall(r"The data folder's format is version (\d+)\.", text) == [str(len(MIGRATIONS))]


def test_the_architecture_shows_every_folder_and_only_modules_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = {folder.rstrip("/"): modules for folder, modules in _ROOM.findall(text)}
    folders = {relative(path.parent) for path in python_files(*PACKAGES)}

    assert folders - set(rows) == set(), "folders that the table does not show"
    missing = [
        f"{folder}/{name}"
        for folder, modules in rows.items()
        for name in re.findall(r"`(\w+)`", modules)
        if not (ROOT / folder / f"{name}.py").exists()
    ]
    assert missing == []
