"""Write the tables of docs/configuration.md and deploy/parlour.example.toml from the settings' models.

Run `python -m gateway.config.docs_tables` in the checkout; a test compares both files with its output.
Not here: the prose of the page, which is written by hand.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from gateway.config.catalog import REPEATED, SECTIONS, SETTINGS, RepeatedTable, SettingInfo, toml_value
from pipeline.domain.errors import ConfigurationError

PAGE = Path("docs/configuration.md")
EXAMPLE = Path("deploy/parlour.example.toml")
BEGIN = "<!-- settings: made by python -m gateway.config.docs_tables -->"
END = "<!-- end of settings -->"

_EXAMPLE_HEAD = (
    "Parlour's settings. Every line that is commented out shows the default.",
    "Check a changed file with: parlour check-config --config parlour.toml",
    "Made by python -m gateway.config.docs_tables; docs/configuration.md explains layers and secrets.",
)


def tables() -> str:
    """One Markdown table for each section."""
    parts = []
    for section, settings in _sections():
        parts.append(f"### [{section}]\n\n| Setting | Default | Takes | Meaning |\n|---|---|---|---|\n")
        parts.extend(_row(setting) for setting in settings)
        parts.append("\n")
    for table in REPEATED.values():
        parts.append(
            f"### {table.header}\n\n{_sentence(table)}\n\n"
            "| Setting | Default | Takes | Meaning |\n|---|---|---|---|\n"
        )
        parts.extend(_row(setting) for setting in table.settings.values())
        parts.append("\n")
    return "".join(parts).rstrip("\n") + "\n"


def example() -> str:
    """A TOML file with every setting commented out at its default and explained."""
    parts = ["".join(f"# {line}\n" for line in _EXAMPLE_HEAD)]
    for section, settings in _sections():
        title = SECTIONS[section].partition(": ")[2].rstrip(".")
        parts.append(f"\n# {'-' * 8} {title}\n[{section}]\n")
        parts.extend(_entry(setting) for setting in settings)
    for table in REPEATED.values():
        sentence = textwrap.wrap(_sentence(table), width=96)
        parts.append(f"\n# {'-' * 8} {table.header}\n" + "".join(f"# {line}\n" for line in sentence))
        # Everything is commented out: a file without such a table has none.
        parts.append(f"#   {table.header}\n")
        parts.extend(_shown_entry(setting) for setting in table.settings.values())
    return "".join(parts)


def page(current: str) -> str:
    """`current` with new tables between its two marks. Raises ConfigurationError without marks."""
    head, begin, rest = current.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ConfigurationError(f"{PAGE}: the marks of the settings are missing; put back {BEGIN} and {END}")
    return f"{head}{BEGIN}\n\n{tables()}\n{END}{tail}"


def main(root: Path) -> int:
    """Rewrite both files below `root`, the checkout. Returns the exit code."""
    try:
        (root / PAGE).write_text(page((root / PAGE).read_text(encoding="utf-8")), encoding="utf-8")
        (root / EXAMPLE).write_text(example(), encoding="utf-8")
    except (ConfigurationError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _sections() -> list[tuple[str, list[SettingInfo]]]:
    found = [
        (section, [setting for setting in SETTINGS.values() if setting.section == section])
        for section in SECTIONS
    ]
    return [(section, settings) for section, settings in found if settings]


def _sentence(table: RepeatedTable) -> str:
    """What the tables are for, for people."""
    words = table.title.partition(": ")[2]
    return words[:1].upper() + words[1:]


def _row(setting: SettingInfo) -> str:
    default = "—" if setting.default is None else f"`{toml_value(setting.default)}`"
    cells = (f"`{setting.path}`", default, setting.expected, setting.description)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _entry(setting: SettingInfo) -> str:
    text = f"{setting.description} Takes {setting.expected}."
    lines = "".join(f"# {line}\n" for line in textwrap.wrap(text, width=96))
    if setting.default is None:
        return f"{lines}# Example: {setting.key} = {toml_value(setting.example)}\n"
    if setting.example != setting.default:
        lines += f"# Example: {setting.key} = {toml_value(setting.example)}\n"
    return f"{lines}# {setting.key} = {toml_value(setting.default)}\n"


def _shown_entry(setting: SettingInfo) -> str:
    """A setting of a table that repeats, with a value as an example."""
    text = f"{setting.description} Takes {setting.expected}."
    lines = "".join(f"# {line}\n" for line in textwrap.wrap(text, width=96))
    return f"{lines}#   {setting.key} = {toml_value(setting.example)}\n"


if __name__ == "__main__":
    sys.exit(main(Path()))
