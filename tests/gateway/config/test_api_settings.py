"""The settings of the HTTP API: what is accepted, and every mistake in words.

Covers: gateway/config/api.py, gateway/config/api_rules.py, gateway/config/catalog.py,
gateway/config/token_formats.py, gateway/config/explain.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.config import check_config, load
from tests.gateway.config.support import problem_lines, write_config
from tests.pipeline.workflows.documents import agent, approval, document, start, way

TRIAGE = Path("examples/workflows/triage.workflow.json").resolve()
ENVIRON = {"CI": "ci-0123456789abcdef0123456789", "HOOK": "hook-0123456789abcdef012345"}
GOOD = f"""
[agents.triage]
graph = "{TRIAGE}"
[api]
enabled = true
[api.tokens.ci]
token = "env:CI"
scopes = ["run", "read", "answer"]
workflows = ["triage"]
[api.webhooks.issues]
secret = "env:HOOK"
workflow = "triage"
token = "ci"
message = "New: {{{{issue.title}}}} {{{{ labels.0.name }}}}"
"""


def test_the_api_is_off_and_has_no_token() -> None:
    settings = load(Path("/dev/null"), {}, [])
    assert (settings.api.enabled, dict(settings.api.tokens), dict(settings.api.webhooks)) == (False, {}, {})


def test_tokens_and_webhooks_are_tables_with_names_also_in_the_environment(tmp_path: Path) -> None:
    environ = {**ENVIRON, "PARLOUR__API__TOKENS__CI__SCOPES": '["read"]', "PARLOUR__API__MAX_OPEN_RUNS": "3"}
    settings = load(write_config(tmp_path, GOOD), environ, ["api.webhooks.issues.tolerance_s=60"])
    assert settings.api.tokens["ci"].scopes == ("read",)
    assert (settings.api.max_open_runs, settings.api.webhooks["issues"].tolerance_s) == (3, 60)
    assert {"api.tokens.ci.token", "api.webhooks.issues.secret"} <= settings.secret_refs().keys()


def test_check_config_prints_the_tables_and_no_secret(tmp_path: Path) -> None:
    written: list[str] = []
    code = check_config(write_config(tmp_path, GOOD), ENVIRON, [], written.append, labels=())
    text = "".join(written)
    assert code == 0, text
    assert "env:CI (set, 29 characters)" in text
    assert "runs of the HTTP API, by name: triage" in text
    assert "nowhere" not in text
    assert not any(value in text for value in ENVIRON.values())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('token = "env:CI"\n', "", "api.tokens.ci.token: is not set (in "),
        ('workflows = ["triage"]', "workflows = []", "api.tokens.ci.workflows: names no workflow (in "),
        (
            'workflows = ["triage"]',
            'workflows = ["triag"]',
            "api.tokens.ci.workflows: no agent 'triag' has a workflow as its graph (in ",
        ),
        (
            'scopes = ["run", "read", "answer"]',
            'scopes = ["admin"]',
            "api.tokens.ci.scopes[0]: expected text, but text of 5 characters was given (in ",
        ),
        ('scopes = ["run", "read", "answer"]', "scopes = []", "api.tokens.ci.scopes: is empty"),
        ('secret = "env:HOOK"\n', "", "api.webhooks.issues.secret: is not set (in "),
        (
            'secret = "env:HOOK"',
            'secret = "env:CI"',
            "api.webhooks.issues.secret: has the value of api.tokens.ci",
        ),
        ('workflow = "triage"\ntoken', "token", "api.webhooks.issues.workflow: is not set (in "),
        (
            'workflow = "triage"\ntoken',
            'workflow = "default"\ntoken',
            "api.webhooks.issues.workflow: no agent 'default' has a workflow as its graph (in ",
        ),
        ('token = "ci"', 'token = "cj"', "api.webhooks.issues.token: there is no token 'cj' (in "),
        (
            'workflows = ["triage"]',
            'workflows = ["other"]',
            "api.webhooks.issues.token: the token ci may not use the workflow 'triage' (in ",
        ),
        ("issue.title", "issue title", "api.webhooks.issues.message: has a place that is not a path"),
        ("tokens.ci]", "tokens.CI]", "api.tokens.CI: names no setting (in "),
        ("tokens.ci]", "tokens.ci.more]", "api.tokens.ci.more: names no setting (in "),
        ('token = "env:CI"', 'tokn = "env:CI"', "api.tokens.ci.tokn: names no setting (in "),
        ('token = "ci"', 'token = "ci"\nsignature_header = "X Y"', "is not the name of a header (in "),
        ("enabled = true", 'enabled = "yes"', "api.enabled: expected true or false"),
    ],
)
def test_every_mistake_is_named_with_what_to_do(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert GOOD.count(old) == 1
    lines = problem_lines(write_config(tmp_path, GOOD.replace(old, new)), ENVIRON)
    assert any(words in line and "; " in line for line in lines), lines


def test_an_api_without_a_token_and_a_token_that_can_be_guessed_are_mistakes(tmp_path: Path) -> None:
    alone = write_config(tmp_path, "[api]\nenabled = true\n")
    assert problem_lines(alone)[0].startswith("api.enabled: is true, but there is no token (in ")
    lines = problem_lines(write_config(tmp_path, GOOD), {**ENVIRON, "CI": "short"})
    assert lines[0].startswith("api.tokens.ci.token: is not 24 to 500 printable ASCII characters")
    lines = problem_lines(write_config(tmp_path, GOOD), {"CI": ENVIRON["CI"]})
    assert lines[0].startswith("api.webhooks.issues.secret: the environment variable HOOK is not set")


def test_an_api_that_other_machines_reach_needs_an_origin(tmp_path: Path) -> None:
    text = GOOD + '[server]\nhost = "0.0.0.0"\n[channels.web]\nenabled = false\n'
    assert problem_lines(write_config(tmp_path, text), ENVIRON)[0].startswith("server.host: other machines")


def test_an_approver_who_cannot_answer_is_a_mistake_of_the_workflow(tmp_path: Path) -> None:
    nodes = (start(), approval("ok", approvers=["api:boss", "api:main:ci", "telegram:1"]), agent("a"))
    source = document(*nodes, routes=[way("start > ok"), way("ok > a", "approve")])
    own = tmp_path / "own.json"
    own.write_text(json.dumps(source), "utf-8")
    text = GOOD.replace(str(TRIAGE), str(own))
    (line,) = problem_lines(write_config(tmp_path, text), ENVIRON)
    assert line.startswith(
        f"agents.triage.graph: {own}: node ok: the approver api:boss is no token of the API"
    )
    narrow = text.replace('"run", "read", "answer"', '"run"')
    lines = problem_lines(write_config(tmp_path, narrow), ENVIRON)
    assert [line.count("api:ci is a token without the scope answer") for line in lines] == [0, 1]
