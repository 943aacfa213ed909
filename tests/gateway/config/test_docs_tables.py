"""The documentation and the example file say what the code does."""

from __future__ import annotations

import contextlib
import re
import tomllib
from pathlib import Path

import pytest

from gateway.config import Settings, load, load_with_sources
from gateway.config.catalog import REPEATED, SETTINGS, dotted
from gateway.config.docs_tables import BEGIN, END, EXAMPLE, PAGE, example, main, page, tables
from pipeline.safety.resources import FILE as SHIPPED_RESOURCES
from tests.gateway.config.support import SECRETS, write_config
from tests.support.onnx_files import write_classifier

ROOT = Path(__file__).parents[3]
_COMMENTED = re.compile(r"^# ([a-z_]+ = .*)$", re.MULTILINE)
_BLOCKS = re.findall(r"^```toml\n(.*?)^```", (ROOT / PAGE).read_text("utf-8"), re.MULTILINE | re.DOTALL)
_SHOWN = re.compile(r"^# Example: ([a-z_]+ = .*)$", re.MULTILINE)


def test_the_pages_tables_are_what_the_code_makes() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")

    assert page(text) == text, "run: python -m gateway.config.docs_tables"
    repeated = [setting.path for table in REPEATED.values() for setting in table.settings.values()]
    assert all(f"| `{name}` |" in text for name in (*SETTINGS, *repeated))


def test_the_example_file_is_what_the_code_makes() -> None:
    assert (ROOT / EXAMPLE).read_text(encoding="utf-8") == example(), (
        "run: python -m gateway.config.docs_tables"
    )


def test_the_example_file_loads_and_changes_nothing() -> None:
    assert load(ROOT / EXAMPLE, {}, []) == Settings()


def test_the_example_file_uncommented_gives_every_default(tmp_path: Path) -> None:
    path = write_config(tmp_path, _COMMENTED.sub(r"\1", example()))

    loaded = load_with_sources(path, {}, [])

    assert loaded.settings == Settings()
    with_default = {name for name, setting in SETTINGS.items() if setting.default is not None}
    assert {name for name, source in loaded.sources.items() if source.kind == "file"} == with_default


def test_every_setting_occurs_in_the_example_file() -> None:
    # A shown value may be beside a default: the default goes first, or the key would be there twice.
    without_defaults = _COMMENTED.sub("", example())
    shown = _names(tomllib.loads(_SHOWN.sub(r"\1", without_defaults)))
    defaults = _names(tomllib.loads(_COMMENTED.sub(r"\1", example())))

    assert shown | defaults == set(SETTINGS)


def test_the_shown_tables_that_repeat_are_accepted(tmp_path: Path) -> None:
    lines = [line.removeprefix("#   ") for line in example().split("\n") if line.startswith("#   ")]
    text = "\n".join(lines).replace("[agents.NAME]", "[agents.research]")
    text = text.replace("[api.tokens.NAME]", "[api.tokens.ci]").replace("webhooks.NAME]", "webhooks.issues]")
    path = write_config(tmp_path, text.replace('agent = "default"', 'agent = "research"'))

    long = {name: f"{name}-0123456789-0123456789" for name in ("CI_API_TOKEN", "ISSUES_WEBHOOK_SECRET")}
    loaded = load_with_sources(path, {"SUPPORT_OPENAI_API_KEY": "lion", **long}, [])

    shown = {f"agents.research.{key}" for key in REPEATED["agents"].settings}
    shown |= {f"routes.1.{key}" for key in REPEATED["routes"].settings}
    shown |= {f"api.tokens.ci.{key}" for key in REPEATED["api.tokens"].settings}
    shown |= {f"api.webhooks.issues.{key}" for key in REPEATED["api.webhooks"].settings}
    assert {name for name, source in loaded.sources.items() if source.kind == "file"} == shown
    assert loaded.settings.agents["research"].tools == ("notes", "schedule")
    assert loaded.settings.routes[0].kind == "private"


def test_the_shown_values_are_accepted_where_they_make_sense_together(tmp_path: Path) -> None:
    write_secrets(tmp_path)
    path = write_config(tmp_path, _SHOWN.sub(r"\1", _COMMENTED.sub("", example())))

    (tmp_path / "mcp.json").write_text('{"mcpServers": {}}')
    (tmp_path / "policy.toml").touch()
    write_classifier(tmp_path / "models" / "injection")
    (tmp_path / "resources.toml").write_bytes(SHIPPED_RESOURCES.read_bytes())
    with contextlib.chdir(tmp_path):
        loaded = load_with_sources(
            path,
            {"OPENAI_API_KEY": "lion", "BRAVE_API_KEY": "bear", "ANTHROPIC_API_KEY": "wolf"}
            | {"PARLOUR_DATABASE_URL": "postgresql://bot@db/parlour", "REDIS_URL": "redis://localhost/0"},
            [
                "llm.model=openai/gpt-5-mini",
                "voice.transcriber=openai/whisper-1",
                "tools.search.backend=brave",
                "storage.kind=postgres",
                "bus.kind=redis",
            ],
        )

    shown = {name for name, setting in SETTINGS.items() if setting.example != setting.default}
    assert {name for name, source in loaded.sources.items() if source.kind == "file"} == shown


@pytest.mark.parametrize("block", _BLOCKS)
def test_the_pages_examples_load_and_say_more_than_nothing(tmp_path: Path, block: str) -> None:
    write_secrets(tmp_path)

    settings = load(write_config(tmp_path, block), {}, [])

    assert settings != Settings()
    assert any(account.settings.active for account in settings.channels.accounts())


def test_the_page_shows_an_example_of_each_channel() -> None:
    assert {"telegram", "slack", "discord"} <= {
        name for block in _BLOCKS for name in tomllib.loads(block)["channels"]
    }


def test_every_setting_is_explained_in_a_sentence() -> None:
    for name, setting in SETTINGS.items():
        assert setting.description.endswith("."), name
        assert setting.expected, name


def test_the_document_command_writes_both_files(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "deploy").mkdir()
    (tmp_path / PAGE).write_text(f"Before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")

    assert main(tmp_path) == 0

    text = (tmp_path / PAGE).read_text(encoding="utf-8")
    assert text == f"Before\n{BEGIN}\n\n{tables()}\n{END}\nafter\n"
    assert (tmp_path / EXAMPLE).read_text(encoding="utf-8") == example()


def test_the_document_command_refuses_a_page_without_marks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / PAGE).write_text("no marks here\n", encoding="utf-8")

    assert main(tmp_path) == 2
    assert "the marks of the settings are missing" in capsys.readouterr().err


def write_secrets(folder: Path) -> None:
    """Every secret of a channel and the metrics' in the file that the documentation shows for it."""
    (folder / "secrets").mkdir()
    telegram = SECRETS["channels.telegram.token"]
    values = {
        **{
            str(SETTINGS[name].example).removeprefix("file:"): value
            for name, value in {**SECRETS, "server.metrics_token": "burning-bright-in-the-forests"}.items()
        },
        "secrets/shop-token": telegram.replace("Aa0", "Bb1"),
        "secrets/staff-token": telegram.replace("Aa0", "Cc2"),
    }
    for name, value in values.items():
        file = folder / name
        file.write_text(value, encoding="utf-8")
        file.chmod(0o600)


def _names(table: dict[str, object], path: tuple[str, ...] = ()) -> set[str]:
    names = set()
    for key, value in table.items():
        if isinstance(value, dict):
            names |= _names(value, (*path, key))
        else:
            names.add(dotted((*path, key)))
    return names
