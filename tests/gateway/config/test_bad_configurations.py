"""Every bad configuration has its own line: where, what is wrong, what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.config import ConfigurationProblems, crash_at, load
from gateway.runtime.crash_labels import LABELS
from tests.gateway.config.bad_files import BAD_FILES, HOST_FIX, REFERENCE_FIX
from tests.gateway.config.support import problem_lines, write_config

BAD_OVERLAYS = [
    (
        {"PARLOUR__SERVER__PORT": "many"},
        [],
        (
            "server.port: expected a whole number from 0 to 65535, but text of 4 characters was "
            "given (in the "
            "environment variable PARLOUR__SERVER__PORT); write a number such as 8765"
        ),
    ),
    (
        {"PARLOUR__SERVER__PROT": "1"},
        [],
        (
            "server.prot: names no setting (in the environment variable PARLOUR__SERVER__PROT); "
            "did you mean server.port?"
        ),
    ),
    (
        {"PARLOUR__": "1"},
        [],
        (
            '"": names no setting (in the environment variable PARLOUR__); known sections: bot, '
            "data, files, models, "
            "server, llm, voice, channels, turn, agent, tools, shield, safety, memory, heartbeat, limits, "
            "budget, storage, bus, cluster, log, api, agents, routes"
        ),
    ),
    (
        {"PARLOUR__LLM": "local"},
        [],
        (
            "llm: is a section, but a single value was given (in the environment variable PARLOUR__LLM); "
            "write the table [llm]"
        ),
    ),
    (
        {"PARLOUR__CHANNELS__WEB__TOKEN": "tiger"},
        [],
        "channels.web.token: is not a reference to a secret (in the environment variable "
        "PARLOUR__CHANNELS__WEB__TOKEN); " + REFERENCE_FIX,
    ),
    (
        {"PARLOUR__BOT__NAME": "\udc80"},
        [],
        (
            "bot.name: expected text of 1 to 64 characters, but text that is not Unicode was given (in the "
            'environment variable PARLOUR__BOT__NAME); write for example "Parlour"'
        ),
    ),
    (
        {},
        ["server.port=99999"],
        (
            "server.port: expected a whole number from 0 to 65535, but 99999 was given (in the "
            "option --set); "
            "write a number such as 8765"
        ),
    ),
    (
        {},
        ["server.port=1", "sk-secret"],
        (
            "--set: override number 2 does not have the form section.key=value; "
            "write for example --set server.port=8765"
        ),
    ),
    (
        {},
        ["server..port=1"],
        (
            "--set: override number 1 does not have the form section.key=value; "
            "write for example --set server.port=8765"
        ),
    ),
    (
        {},
        ["c2stc2VjcmV0=="],
        (
            "--set: override number 1 does not have the form section.key=value; "
            "write for example --set server.port=8765"
        ),
    ),
    (
        {},
        ["server.port.number=1"],
        "server.port.number: names no setting (in the option --set); did you mean server.port?",
    ),
    (
        {},
        ["server.host=::"],
        "server.host: other machines could connect, but no page outside this machine is allowed "
        "(in the option --set); " + HOST_FIX,
    ),
]


@pytest.mark.parametrize(("text", "line"), BAD_FILES)
def test_a_bad_file_gives_exactly_one_line(tmp_path: Path, text: str, line: str) -> None:
    path = write_config(tmp_path, text)

    [found] = problem_lines(path, {"KEY": "value"})

    # Other tests check the number of the line.
    assert re.sub(rf"(?<={re.escape(str(path))}), line \d+", "", found) == line.replace("FILE", str(path))


@pytest.mark.parametrize(("environ", "overrides", "line"), BAD_OVERLAYS)
def test_a_bad_overlay_gives_exactly_one_line(
    tmp_path: Path, environ: dict[str, str], overrides: list[str], line: str
) -> None:
    assert problem_lines(write_config(tmp_path, ""), environ, overrides) == [line]


def test_all_problems_come_at_once_from_all_layers(tmp_path: Path) -> None:
    path = write_config(
        tmp_path,
        '[server]\nport = "x"\nhots = 1\n[llm]\nmodel = "openai/x"\napi_key = "env:NONE"\n[log]\nlevel = 3\n',
    )

    lines = problem_lines(path, {"PARLOUR__VOICE__ENABLED": "perhaps"}, ["turn.lease_s=1", "nonsense"])

    assert [line.partition(":")[0] for line in lines] == [
        "server.hots",
        "--set",
        "server.port",
        "voice.enabled",
        "turn.lease_s",
        "log.level",
        "llm.api_key",
    ]


def test_a_rule_is_not_judged_on_a_value_that_is_bad_itself(tmp_path: Path) -> None:
    path = write_config(tmp_path, '[server]\nhost = "0.0.0.0"\npublic_origins = ["nonsense"]\n')

    [line] = problem_lines(path)

    assert line.startswith("server.public_origins[0]: is not an origin")


def test_a_bad_value_that_a_later_layer_replaces_is_no_problem(tmp_path: Path) -> None:
    path = write_config(tmp_path, '[server]\nport = "x"\n')

    [line] = problem_lines(path, {}, ["server.port=70000"])

    assert "70000" in line


def test_a_key_with_a_line_break_stays_on_one_line(tmp_path: Path) -> None:
    [line] = problem_lines(write_config(tmp_path, '"a\\nb\\u001b[31m" = 1\n'))

    assert line.startswith('"a\\nb\\u001b[31m": names no setting')


def test_a_missing_file_is_reported_in_words(tmp_path: Path) -> None:
    path = tmp_path / "absent.toml"

    assert problem_lines(path) == [
        f"{path}: cannot be read (No such file or directory); name a file that this user can read"
    ]
    assert problem_lines(None, {"PARLOUR_CONFIG": str(path)}) == problem_lines(path)


def test_a_folder_in_place_of_the_file_is_reported_in_words(tmp_path: Path) -> None:
    assert problem_lines(tmp_path) == [
        f"{tmp_path}: cannot be read (Is a directory); name a file that this user can read"
    ]


def test_a_file_that_is_not_utf8_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "parlour.toml"
    path.write_bytes(b"[bot]\n\nname = '\xff'\n")

    assert problem_lines(path) == [f"{path}: is not UTF-8 text at line 3; save the file as UTF-8"]


def test_a_problem_carries_no_exception_that_holds_the_value(tmp_path: Path) -> None:
    path = write_config(tmp_path, '[llm]\nmodel = "openai/x"\napi_key = "sk-tiger"\n')

    with pytest.raises(ConfigurationProblems) as caught:
        load(path, {}, ())

    assert caught.value.__context__ is None


@pytest.mark.parametrize("value", ["", "send-before", "send-before:0", "send-before:x", "nowhere:1", ":1"])
def test_a_malformed_crash_label_is_a_problem(value: str) -> None:
    with pytest.raises(ConfigurationProblems) as caught:
        crash_at({"PARLOUR_CRASH_AT": value}, labels=LABELS)

    assert str(caught.value).startswith(
        "PARLOUR_CRASH_AT: expected a crash label and a count from 1, as label:n; unset the variable"
    )


def test_a_crash_label_is_given_as_it_is_and_absent_by_default() -> None:
    assert crash_at({"PARLOUR_CRASH_AT": "send-before:3"}, labels=LABELS) == "send-before:3"
    assert crash_at({}, labels=LABELS) is None
