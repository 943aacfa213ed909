"""What the README tells a newcomer to type exists, and what it shows is there."""

from __future__ import annotations

import argparse
import re

import pytest

from gateway.cli.main import _parser
from tests.architecture.sources import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
_CODE = re.compile(r"```sh\n(.*?)```|`([^`\n]+)`", re.DOTALL)


def code() -> list[str]:
    """Every line of code in the README: shell blocks and inline."""
    found = ["".join(groups) for groups in _CODE.findall(README)]
    return [line.strip() for text in found for line in text.splitlines()]


def make_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))


def subcommands() -> dict[str, argparse.ArgumentParser]:
    """`serve`, `models get` and so on, each with its parser."""

    def of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
        groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        found: dict[str, argparse.ArgumentParser] = {}
        for group in groups:
            for name, child in group.choices.items():
                found[name] = child
                found |= {f"{name} {deeper}": leaf for deeper, leaf in of(child).items()}
        return found

    return of(_parser())


def test_every_make_target_of_the_readme_exists() -> None:
    named = {target for line in code() for target in re.findall(r"^make ([a-z]+)", line)}

    assert {"run", "test", "check"} <= named
    assert named - make_targets() == set()


def test_every_command_of_the_readme_exists_with_its_options() -> None:
    known = subcommands()
    lines = [line.removeprefix("parlour ") for line in code() if line.startswith("parlour ")]

    assert lines
    for line in lines:
        words = line.split()
        depth = 2 if " ".join(words[:2]) in known else 1
        assert " ".join(words[:depth]) in known, f"parlour {line}"
        options = {word for word in words if word.startswith("--")}
        offered = known[" ".join(words[:depth])].format_help()
        assert [option for option in options if option not in offered] == [], f"parlour {line}"


def test_the_settings_that_the_readme_changes_are_taken() -> None:
    documented = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    changed = set(re.findall(r"--set ([a-z_.]+)=", README)) | set(
        re.findall(r"`([a-z]+(?:\.[a-z_]+)+)`", README)
    )
    settings = {name for name in changed if not name.endswith((".toml", ".py", ".md", ".yaml"))}

    assert settings
    assert [name for name in sorted(settings) if f"`{name}`" not in documented] == []


@pytest.mark.parametrize("command", ["serve", "chat", "doctor", "check-config", "models get"])
def test_no_command_is_left_out_of_the_readme(command: str) -> None:
    assert command in subcommands()
    assert f"parlour {command}" in README or f"make {command}" in README


def test_every_image_of_the_readme_is_a_picture() -> None:
    images = set(re.findall(r"docs/images/[a-z-]+\.png", README))

    assert len(images) == 3
    missing = [name for name in sorted(images) if not (ROOT / name).exists()]
    assert missing == []
    assert all((ROOT / name).read_bytes().startswith(b"\x89PNG") for name in images)
