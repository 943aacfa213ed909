"""Every bad configuration has its own line: where, what is wrong, what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config import ConfigurationProblems, crash_at, load
from tests.gateway.config.support import problem_lines, write_config

REFERENCE_FIX = 'write "env:NAME" or "file:PATH" and keep the secret itself out of the configuration'
HOST_FIX = (
    'set server.public_origins to the origins people use, like ["https://bot.example.org"], or '
    'server.host to "127.0.0.1"'
)
ORIGIN_FIX = "write only scheme, host and port, in lower case, like https://bot.example.org"
MODEL_FIX = 'write "local", "scripted:…" or a name like "openai/gpt-5-mini"'

# What the file holds, and the one line that must come of it. FILE stands for the file's path.
BAD_FILES = [
    (
        "[server]\nport = 99999",
        (
            "server.port: expected a whole number from 0 to 65535, but 99999 was given (in FILE); "
            "write a number such as 8765"
        ),
    ),
    (
        "[server]\nport = -1",
        (
            "server.port: expected a whole number from 0 to 65535, but -1 was given (in FILE); "
            "write a number such as 8765"
        ),
    ),
    (
        '[server]\nport = "8765"',
        (
            "server.port: expected a whole number from 0 to 65535, but text of 4 characters was "
            "given (in FILE); "
            "write a number such as 8765 without quotes"
        ),
    ),
    (
        "[server]\nport = 80.5",
        (
            "server.port: expected a whole number from 0 to 65535, but 80.5 was given (in FILE); "
            "write a number such as 8765"
        ),
    ),
    (
        "[server]\nport = true",
        (
            "server.port: expected a whole number from 0 to 65535, but true was given (in FILE); "
            "write a number such as 8765"
        ),
    ),
    (
        "[server]\nport = 0xffffffffffffffffffff",
        (
            "server.port: expected a whole number from 0 to 65535, but a number was given (in FILE); "
            "write a number such as 8765"
        ),
    ),
    (
        '[server]\nhost = "http://127.0.0.1"',
        (
            "server.host: is not an IP address or a host name (in FILE); "
            "write for example 127.0.0.1, ::1 or localhost"
        ),
    ),
    (
        '[server]\nhost = "0.0.0.0"',
        "server.host: other machines could connect, but no page outside this machine is allowed (in FILE); "
        + HOST_FIX,
    ),
    (
        '[server]\npublic_origins = "https://bot.example.org"',
        (
            "server.public_origins: expected a list of up to 100 origins, but text of 23 characters "
            "was given "
            '(in FILE); write for example ["https://bot.example.org"]'
        ),
    ),
    (
        '[server]\npublic_origins = ["https://bot.example.org", "https://bot.example.org/"]',
        "server.public_origins[1]: is not an origin (in FILE); " + ORIGIN_FIX,
    ),
    (
        '[server]\npublic_origins = ["*"]',
        "server.public_origins[0]: is not an origin (in FILE); " + ORIGIN_FIX,
    ),
    (
        '[server]\npublic_origins = ["https://Bot.example.org"]',
        "server.public_origins[0]: is not an origin (in FILE); " + ORIGIN_FIX,
    ),
    (
        '[server]\npublic_origins = ["https://bot.example.org:443"]',
        (
            "server.public_origins[0]: names the scheme's own port, which browsers leave out (in FILE); "
            "remove :443"
        ),
    ),
    (
        "[server]\npublic_origins = [7]",
        (
            "server.public_origins[0]: expected text, but a number was given (in FILE); "
            'write for example ["https://bot.example.org"]'
        ),
    ),
    (
        '[bot]\nname = " "',
        "bot.name: is blank or holds a control character (in FILE); write a name of printable characters",
    ),
    (
        f'[bot]\nname = "{"x" * 65}"',
        (
            "bot.name: expected text of 1 to 64 characters, but text of 65 characters was given (in FILE); "
            'write for example "Parlour"'
        ),
    ),
    (
        "[bot]\nname = 1979-05-27",
        (
            "bot.name: expected text of 1 to 64 characters, but a date or a time was given (in FILE); "
            'write for example "Parlour"'
        ),
    ),
    (
        "[bot]\nname = {first = 'x'}",
        (
            "bot.name: expected text of 1 to 64 characters, but a table was given (in FILE); "
            'write for example "Parlour"'
        ),
    ),
    (
        '[data]\ndir = "~/parlour"',
        "data.dir: starts with ~, which is not expanded here (in FILE); write the path in full",
    ),
    ('[data]\ndir = ""', "data.dir: is empty or holds a control character (in FILE); write a path"),
    (
        "[models]\ndir = 3",
        'models.dir: expected a path, but a number was given (in FILE); write for example "models"',
    ),
    ('[llm]\nmodel = "my model"', "llm.model: is not the name of a model (in FILE); " + MODEL_FIX),
    (
        '[llm]\nmodel = "ollama_chat/llama3"\napi_base = "localhost:11434"',
        "llm.api_base: is not an address of an API (in FILE); write for example http://127.0.0.1:11434",
    ),
    (
        '[llm]\nmodel = "ollama_chat/llama3"\napi_base = "https://me:word@host"',
        "llm.api_base: holds a user name or a password (in FILE); remove it and use llm.api_key",
    ),
    (
        '[llm]\napi_base = "http://127.0.0.1:11434"',
        'llm.api_base: has no effect, as llm.model is "local" (in FILE); remove it or name another model',
    ),
    (
        '[llm]\napi_key = "env:KEY"',
        'llm.api_key: has no effect, as llm.model is "local" (in FILE); remove it or name another model',
    ),
    (
        '[llm]\nmodel = "openai/x"\napi_key = "sk-abcdef"',
        "llm.api_key: is not a reference to a secret (in FILE); " + REFERENCE_FIX,
    ),
    (
        '[llm]\nmodel = "openai/x"\napi_key = "env:sk-abcdef"',
        "llm.api_key: does not name an environment variable after env: (in FILE); " + REFERENCE_FIX,
    ),
    (
        '[llm]\nmodel = "openai/x"\napi_key = "file:~/key"',
        "llm.api_key: does not name a plain path after file: (in FILE); " + REFERENCE_FIX,
    ),
    (
        '[llm]\nmodel = "openai/x"\napi_key = 123456',
        "llm.api_key: is not a reference to a secret (in FILE); " + REFERENCE_FIX,
    ),
    (
        '[llm]\nmodel = "openai/x"\napi_key = "env:ABSENT"',
        "llm.api_key: the environment variable ABSENT is not set (referred to in FILE); set it to the secret",
    ),
    (
        "[llm]\ntemperature = 2.5",
        (
            "llm.temperature: expected a number from 0 to 2, but 2.5 was given (in FILE); "
            "write a number such as 0.2"
        ),
    ),
    (
        "[llm]\ntimeout_s = inf",
        (
            "llm.timeout_s: expected a number from 1 to 3600, but a number without bounds was given "
            "(in FILE); "
            "write a number such as 120"
        ),
    ),
    (
        "[llm]\ntimeout_s = nan",
        (
            "llm.timeout_s: expected a number from 1 to 3600, but a number without bounds was given "
            "(in FILE); "
            "write a number such as 120"
        ),
    ),
    ("[llm]\ntemprature = 0.5", "llm.temprature: names no setting (in FILE); did you mean llm.temperature?"),
    (
        "[llm.local]\nthreads = 1000",
        (
            "llm.local.threads: expected a whole number from 0 to 256, but 1000 was given (in FILE); "
            "write a number such as 0"
        ),
    ),
    (
        '[voice]\nenabled = "yes"',
        (
            "voice.enabled: expected true or false, but text of 3 characters was given (in FILE); "
            "write true or false without quotes"
        ),
    ),
    (
        "[voice]\nenabled = 1",
        "voice.enabled: expected true or false, but a number was given (in FILE); write true or false",
    ),
    (
        '[voice]\nlanguage = "English"',
        "voice.language: is not a two-letter language code (in FILE); write for example en, or remove it",
    ),
    (
        '[voice]\ntranscriber = "whisperx"',
        (
            'voice.transcriber: is not a known transcriber (in FILE); write "whisper", or '
            '"scripted:" and the text '
            "to hear"
        ),
    ),
    (
        '[storage]\nkind = "sqlit"',
        (
            'storage.kind: expected "sqlite" or "memory", but text of 5 characters was given (in FILE); '
            'did you mean "sqlite"?'
        ),
    ),
    (
        '[storage]\nkind = "redis"',
        (
            'storage.kind: expected "sqlite" or "memory", but text of 5 characters was given (in FILE); '
            "choose one of them"
        ),
    ),
    (
        '[log]\nlevel = "INFO"',
        (
            'log.level: expected "debug", "info", "warning" or "error", but text of 4 characters '
            "was given (in FILE); "
            'did you mean "info"?'
        ),
    ),
    ("port = 1", "port: names no setting (in FILE); did you mean server.port?"),
    ("[serve]\nport = 1", "serve: names no setting (in FILE); did you mean server?"),
    (
        "[zebra]\nx = 1",
        (
            "zebra: names no setting (in FILE); known sections: bot, data, models, server, llm, "
            "voice, channels, "
            "turn, storage, log"
        ),
    ),
    (
        "[channels.zebra]\nx = 1",
        "channels.zebra: names no setting (in FILE); known in channels: web, console",
    ),
    ('"server.port" = 1', '"server.port": names no setting (in FILE); did you mean server.port?'),
    ("llm = 5", "llm: is a section, but a single value was given (in FILE); write the table [llm]"),
    (
        "[bot]\nname = \n",
        "FILE: is not valid TOML at line 2, column 8: Invalid value; correct the line there",
    ),
    (
        "[bot]\nname = 'x'\nname = 'y'",
        "FILE: is not valid TOML at line 3, column 11: Cannot overwrite a value; correct the line there",
    ),
    (
        "[bot\n",
        (
            "FILE: is not valid TOML at line 1, column 5: Expected ']' at the end of a table declaration; "
            "correct the line there"
        ),
    ),
    ("[bot]\nname = '", 'FILE: is not valid TOML at line 2, column 9: Expected "\'"; correct the line there'),
    ("x = " + "[" * 5_000, "FILE: is nested too deeply; remove the nested brackets"),
    ("x = " + "1" * 5_000, "FILE: holds a number with too many digits; shorten the number"),
]


@pytest.mark.parametrize(("text", "line"), BAD_FILES)
def test_a_bad_file_gives_exactly_one_line(tmp_path: Path, text: str, line: str) -> None:
    path = write_config(tmp_path, text)

    assert problem_lines(path, {"KEY": "value"}) == [line.replace("FILE", str(path))]


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
            "data, models, "
            "server, llm, voice, channels, turn, storage, log"
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


def test_a_missing_file_is_told_in_words(tmp_path: Path) -> None:
    path = tmp_path / "absent.toml"

    assert problem_lines(path) == [
        f"{path}: cannot be read (No such file or directory); name a file that this user can read"
    ]
    assert problem_lines(None, {"PARLOUR_CONFIG": str(path)}) == problem_lines(path)


def test_a_folder_in_place_of_the_file_is_told_in_words(tmp_path: Path) -> None:
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
def test_a_malformed_crash_point_is_a_problem(value: str) -> None:
    with pytest.raises(ConfigurationProblems) as caught:
        crash_at({"PARLOUR_CRASH_AT": value})

    assert str(caught.value).startswith(
        "PARLOUR_CRASH_AT: expected a failpoint and a count from 1, as label:n; unset the variable"
    )


def test_a_crash_point_is_given_as_it_is_and_absent_by_default() -> None:
    assert crash_at({"PARLOUR_CRASH_AT": "send-before:3"}) == "send-before:3"
    assert crash_at({}) is None
