"""The tables [agents.NAME] and [[routes]]: what an agent takes over, who answers where, each mistake."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.config import Settings, agent_settings, agent_speech, check_config, load
from gateway.config.toml_lines import key_lines
from gateway.runtime.crash_labels import LABELS
from tests.gateway.config.support import problem_lines, write_config

_TWO = """
[llm]
model = "openai/big"
api_base = "https://llm.example.org/v1"
api_key = "env:KEY"
max_tokens = 2048

[agents.small]
model = "openai/small"
tools = ["notes"]
max_rounds = 3

[agents.local]
model = "local"

[agents.elsewhere]
api_base = "http://127.0.0.1:1234"
"""
_KEY = {"KEY": "a-key-that-opens-nothing"}


def test_an_assistant_has_the_default_ones_settings_where_its_table_gives_none(tmp_path: Path) -> None:
    settings = load(write_config(tmp_path, _TWO), _KEY, [])

    small = agent_settings(settings, "small")

    assert small.llm.model == "openai/small"
    assert (small.llm.api_base, small.llm.api_key) == (settings.llm.api_base, settings.llm.api_key)
    assert (small.tools.groups, small.agent.max_rounds) == (("notes",), 3)
    assert (small.bot, small.turn, small.budget) == (settings.bot, settings.turn, settings.budget)
    assert agent_settings(settings, "default") is settings


def test_limits_of_one_model_do_not_hold_for_another(tmp_path: Path) -> None:
    settings = load(write_config(tmp_path, _TWO), _KEY, ["agents.local.max_tokens=100"])

    assert agent_settings(settings, "small").llm.max_tokens is None
    assert agent_settings(settings, "local").llm.max_tokens == 100
    assert agent_settings(settings, "elsewhere").llm.max_tokens == 2048


def test_a_language_is_a_tag_in_its_usual_case(tmp_path: Path) -> None:
    given = ["agent.language=de", "agents.a.language=PT-br", "agents.b.language=zh-hant-tw"]
    settings = load(write_config(tmp_path, ""), {}, [*given, "agents.c.language=es-419"])

    found = [agent_speech(settings, name) for name in ("default", "a", "b", "c")]

    assert [(one.language, one.spoken) for one in found] == [
        ("de", "de"),
        ("pt-BR", "pt"),
        ("zh-Hant-TW", "zh"),
        ("es-419", "es"),
    ]
    assert [found[1].read_in(spoken) for spoken in ("", "pt", "en")] == ["pt-BR", "pt-BR", "en"]


def test_a_key_is_sent_neither_to_another_provider_nor_to_another_address(tmp_path: Path) -> None:
    settings = load(write_config(tmp_path, _TWO), _KEY, ["agents.small.model=anthropic/small"])

    for name in ("small", "local"):
        llm = agent_settings(settings, name).llm
        assert (llm.api_base, llm.api_key) == (None, None)
    elsewhere = agent_settings(settings, "elsewhere").llm
    assert (elsewhere.api_base, elsewhere.api_key) == ("http://127.0.0.1:1234", None)


def test_an_assistant_gets_no_tool_that_the_gateway_turned_off(tmp_path: Path) -> None:
    given = ['tools.groups=["notes", "web"]', 'agents.a.tools=["notes", "files"]', "agents.b.tools=[]"]
    settings = load(write_config(tmp_path, ""), {}, given)

    assert agent_settings(settings, "a").tools.groups == ("notes",)
    assert not agent_settings(settings, "b").tools.enabled


def test_the_environment_and_the_command_line_reach_the_tables(tmp_path: Path) -> None:
    path = write_config(tmp_path, '[agents.a]\nmax_rounds = 1\n[[routes]]\nagent = "a"\n')
    environ = {"PARLOUR__AGENTS__A__MAX_ROUNDS": "2", "PARLOUR__ROUTES__1__CHANNEL": "web"}

    settings = load(path, environ, ["agents.b-2.temperature=1", "routes.2.agent=b-2"])

    assert settings.agents["a"].max_rounds == 2
    assert [(route.agent, route.channel) for route in settings.routes] == [("a", "web"), ("b-2", None)]


BAD = [
    ("[agents.A]\nmodel = 'local'", "agents.A: names no setting (in FILE, line 1); a name has up to 32"),
    ("[agents.default]\ntokens = 1", "agents.default: is the name of the agent that [bot], [llm] and "),
    ("\n[agents.a]\nmodle = 'x'", "agents.a.modle: names no setting (in FILE, line 3); did you mean model?"),
    ("[agents.a]", "agents.a: is an empty table (in FILE, line 1); give it a setting, or remove it"),
    (
        "[agents]\na = 5",
        "agents.a: is a section, but a single value was given (in FILE, line 2); write the t",
    ),
    ("[agents.a]\nmodel = 3", "agents.a.model: expected "),
    (
        "[agents.a]\ntools = ['flies']",
        "agents.a.tools[0]: expected text, but text of 5 characters was given (i",
    ),
    (
        "[agents.a]\nmodel = 'local'\napi_base = 'http://x.y'",
        "agents.a.api_base: has no effect, as its model",
    ),
    (
        "[agents.a]\nmodel = 'openai_compatible/x'",
        "agents.a.api_base: is not set, but its model names no pro",
    ),
    ("[agents.a]\napi_key = 'env:NONE'", "agents.a.api_key: "),
    (
        "[agents.a]\nlanguage = 'de_DE'",
        "agents.a.language: is not a language tag (in FILE, line 2); write for example de, pt-BR or zh-",
    ),
    (
        "[agents.a]\nvoice = '../x'",
        "agents.a.voice: is not the name of a voice (in FILE, line 2); write the name ",
    ),
    (
        "routes = 5",
        "routes: is a section, but a single value was given (in FILE, line 1); write the table [[r",
    ),
    ("[[routes]]", "routes.1: is an empty table (in FILE, line 1)"),
    (
        "[[routes]]\nagent = 'a'",
        "routes.1.agent: there is no agent 'a' (in FILE, line 2); there are: def",
    ),
    ("[[routes]]\nkind = 'dm'", "routes.1.kind: expected "),
    (
        "[[routes]]\nchannel = 'telegramm'",
        "routes.1.channel: there is no channel 'telegramm' (in FILE, line 2)",
    ),
    ("[[routes]]\nalso = ['x']\nroom = '1'", "routes.1.also: there is no agent 'x' (in FILE, line 2)"),
    (
        "[[routes]]\nchannel = 'web'\n[[routes]]\nchannel = 'web'\nperson = '1'",
        "routes.2: is never used (in FILE, line 4): routes.1 comes first and matches all of it; put it bef",
    ),
    ("[[routes]]\nkind = 'room'\n[[routes]]\nkind = 7", "routes.2.kind: expected "),
]


@pytest.mark.parametrize(("text", "line"), BAD)
def test_each_mistake_names_its_table_and_its_line(tmp_path: Path, text: str, line: str) -> None:
    path = write_config(tmp_path, f"[llm]\nmodel = 'scripted:echo'\n{text}" if "api_key" in text else text)

    [found] = problem_lines(path)

    assert found.startswith(line.replace("FILE", str(path)))


def test_check_config_says_who_answers_where(tmp_path: Path) -> None:
    path = write_config(
        tmp_path,
        "[agents.shop]\nmodel = 'scripted:echo'\n[agents.idle]\ntokens = 1\n"
        "[[routes]]\nchannel = 'telegram'\nkind = 'private'\nagent = 'shop'\nalso = ['default']\n",
    )
    written: list[str] = []

    assert check_config(path, {}, [], written.append, labels=LABELS) == 0

    assert (
        "Who answers where, the first line that matches:\n"
        "  channel telegram, kind private: shop (or default, by /agent)\n"
        "  everywhere else: default\n"
        "  nowhere, as no route names it: idle\n"
    ) in written
    [shown] = [line for line in written[0].split("\n") if line.startswith("agents.shop.model")]
    assert shown.split()[1:] == ["file", str(path), '"scripted:echo"']


def test_without_tables_the_settings_are_those_of_one_assistant() -> None:
    assert (Settings().agents, Settings().routes) == ({}, ())


def test_lines_are_found_beside_texts_that_look_like_tables() -> None:
    text = 'a = """\n[not.a.table]\nb = 1\n"""\n[[x]]\nc.d = 1\n[[x]]\n"e f" = 2\n[y]\nz = 1'

    assert key_lines(text) == {
        ("a",): 1,
        ("x", "1"): 5,
        ("x", "1", "c", "d"): 6,
        ("x", "2"): 7,
        ("x", "2", "e f"): 8,
        ("y",): 9,
        ("y", "z"): 10,
    }


_QUESTION = {"id": "ask", "run": "question", "with": {"prompt": "Really?"}}
_REPLY = {"id": "say", "run": "reply", "with": {"text": "no"}}


def _gate_file(folder: Path, *nodes: Mapping[str, object], **given: object) -> Path:
    path = folder / "gate.json"
    document = {"name": "gate", "entry": nodes[0]["id"], "nodes": nodes, "edges": [], **given}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_an_agent_has_the_default_ones_gate_unless_its_table_names_one_or_none(tmp_path: Path) -> None:
    gate = _gate_file(tmp_path, _REPLY)
    tables = '[agents.same]\ndescription = "x"\n[agents.open]\ngate = ""\n[agents.own]\ngate = "conversation"'
    text = f'[agent]\ngate = "{gate}"\n{tables}\n'
    settings = load(write_config(tmp_path, text), {}, [])
    gates = {name: agent_settings(settings, name).agent.gate for name in ("default", "same", "open", "own")}
    assert gates == {"default": str(gate), "same": str(gate), "open": "", "own": "conversation"}
    assert load(write_config(tmp_path, ""), {}, []).agent.gate == ""


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        ('gate = "nowhere"', "agent.gate: there is no graph of this name"),
        ('gate = "missing.json"', "agent.gate: missing.json: there is no such file"),
        ('gate = "two words"', "agent.gate: is neither a name nor a file that ends in .json"),
        ('gate = "saved:letters"', "agent.gate: is a saved workflow, which is no gate"),
    ],
)
def test_a_gate_that_is_none_is_a_mistake_at_its_line(tmp_path: Path, line: str, mistake: str) -> None:
    (found,) = problem_lines(write_config(tmp_path, f"[agent]\n{line}\n"), {})
    assert found.startswith(mistake)
    assert "line 2" in found


@pytest.mark.parametrize(
    ("nodes", "given", "mistake"),
    [
        ((_QUESTION,), {}, "asks a person, which a gate cannot"),
        ((_REPLY,), {"pause_nodes": ["say"]}, "asks a person, which a gate cannot"),
        ((_REPLY,), {"keep": {"seen": {"lives": "person"}}}, "keeps state between runs, which a gate cannot"),
    ],
)
def test_a_graph_that_cannot_be_a_gate_is_a_mistake(
    tmp_path: Path, nodes: tuple[Mapping[str, object], ...], given: dict[str, object], mistake: str
) -> None:
    gate = _gate_file(tmp_path, *nodes, **given)
    (found,) = problem_lines(write_config(tmp_path, f'[agents.shop]\ngate = "{gate}"\n'), {})
    assert found.startswith("agents.shop.gate: graph gate: ")
    assert mistake in found


def test_an_agent_may_name_a_saved_workflow_which_is_read_at_the_start(tmp_path: Path) -> None:
    text = '[agents.letters]\ngraph = "saved:Our letters@3"\n'
    assert load(write_config(tmp_path, text), {}, []).agents["letters"].graph == "saved:Our letters@3"
    (found,) = problem_lines(write_config(tmp_path, '[agent]\ngraph = "saved:a/b"\n'), {})
    assert found.startswith("agent.graph: is no name of a saved workflow")
    assert "line 2" in found
