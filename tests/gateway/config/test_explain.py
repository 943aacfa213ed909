"""What `parlour check-config` prints and returns."""

from __future__ import annotations

import contextlib
from pathlib import Path

from gateway.config import Settings, check_config, explain, load_with_sources
from gateway.config.catalog import SETTINGS
from gateway.runtime.crash_labels import LABELS
from tests.gateway.config.support import write_config


def test_every_setting_has_one_line_with_its_source_and_value(tmp_path: Path) -> None:
    path = write_config(tmp_path, '[bot]\nname = "Ada \\u00e9"\n')
    loaded = load_with_sources(
        path, {"PARLOUR__SERVER__PORT": "0"}, ['server.public_origins=["https://a.org"]']
    )

    lines = explain(loaded.settings, loaded.sources).split("\n")

    cells = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines}
    assert list(cells) == list(SETTINGS)
    assert cells["bot.name"].split(maxsplit=2) == ["file", str(path), '"Ada é"']
    assert cells["server.port"].split() == ["environment", "PARLOUR__SERVER__PORT", "0"]
    assert cells["server.public_origins"].split() == ["command", "line", "--set", '["https://a.org"]']
    assert cells["llm.timeout_s"].split() == ["default", "0"]
    assert cells["voice.language"].split() == ["default", "not", "set"]
    assert cells["data.dir"].split() == ["default", '"data"']


def test_a_secret_is_shown_by_reference_and_length_only() -> None:
    environ = {"KEY": "tiger-tiger-tiger-tiger!"}
    loaded = load_with_sources(Path("/dev/null"), environ, ["channels.web.token=env:KEY"])

    report = explain(loaded.settings, loaded.sources)

    assert "env:KEY (set, 24 characters)" in report
    assert "tiger" not in report


def test_a_secret_that_is_gone_since_loading_is_shown_as_such() -> None:
    environ = {"KEY": "tiger-tiger-burning"}
    loaded = load_with_sources(Path("/dev/null"), environ, ["channels.web.token=env:KEY"])
    environ.clear()

    assert "env:KEY (not readable now)" in explain(loaded.settings, loaded.sources)


def test_settings_built_without_sources_are_all_defaults() -> None:
    assert all(" default " in line for line in explain(Settings(), {}).split("\n"))


def test_a_valid_configuration_ends_with_zero_and_names_the_file(tmp_path: Path) -> None:
    path = write_config(tmp_path, "")
    written: list[str] = []

    assert check_config(path, {}, [], written.append, labels=LABELS) == 0
    assert written[-1] == f"The configuration is valid ({path}).\n"
    assert written[0].count("\n") == len(SETTINGS)


def test_without_a_file_the_report_says_so(tmp_path: Path) -> None:
    written: list[str] = []

    with contextlib.chdir(tmp_path):
        assert check_config(None, {}, [], written.append, labels=LABELS) == 0

    assert written[-1] == "The configuration is valid (no file).\n"


def test_a_wrong_configuration_ends_with_two_and_one_line_for_each_problem(tmp_path: Path) -> None:
    path = write_config(tmp_path, "[server]\nport = -1\nhots = 1\n")
    written: list[str] = []

    assert check_config(path, {"PARLOUR_CRASH_AT": "never"}, [], written.append, labels=LABELS) == 2
    assert [line.partition(":")[0] for line in written] == [
        "server.hots",
        "server.port",
        "PARLOUR_CRASH_AT",
        "The configuration has 3 problems.\n",
    ]
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in written)


def test_a_bad_file_of_mcp_servers_is_one_line_that_names_file_and_key(tmp_path: Path) -> None:
    path = write_config(tmp_path, '[tools]\nmcp_file = "mcp.json"\n')
    servers = Path("mcp.json")
    (tmp_path / servers).write_text('{"mcpServers": {"tracker": {"args": []}}}')
    written: list[str] = []

    with contextlib.chdir(tmp_path):
        assert check_config(path, {}, [], written.append, labels=LABELS) == 2
    (line, count) = written
    assert line.startswith(f"tools.mcp_file: {servers}: mcpServers.tracker: write either command")
    assert f"(referred to in {path}, line 2)" in line
    assert count == "The configuration has 1 problem.\n"
    assert check_config(path, {}, ["tools.enabled=false"], written.append, labels=LABELS) == 0


def test_a_wrong_crash_label_alone_is_a_problem(tmp_path: Path) -> None:
    written: list[str] = []

    assert (
        check_config(write_config(tmp_path, ""), {"PARLOUR_CRASH_AT": "x"}, [], written.append, labels=LABELS)
        == 2
    )
    assert written[-1] == "The configuration has 1 problem.\n"
