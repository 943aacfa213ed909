"""`parlour workflow`: all mistakes of a document, its picture, and a run in the terminal.

Covers: gateway/cli/workflow.py, gateway/cli/playbook.py, gateway/cli/workflow_arguments.py,
pipeline/workflows/picture.py, pipeline/playbooks/picture.py, pipeline/workflows/exploring/shown.py,
pipeline/workflows/exploring/findings.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.cli.main import main
from tests.cli.test_commands import ROOT, SCRIPTED, parlour
from tests.pipeline.playbooks.documents import agent as step
from tests.pipeline.playbooks.documents import node, playbook, route, trigger
from tests.pipeline.workflows.documents import agent, approval, choice, document, start, way

TRIAGE = ROOT / "examples" / "workflows" / "triage.workflow.json"


def _file(folder: Path, found: object, name: str = "own.json") -> str:
    path = folder / name
    path.write_text(found if isinstance(found, str) else json.dumps(found), "utf-8")
    return str(path)


def test_the_examples_have_no_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(file) for file in sorted((ROOT / "examples" / "workflows").glob("*.json"))]
    assert main(["workflow", "check", *files]) == 0
    assert capsys.readouterr().out.count("no mistakes") == len(files)


def test_every_mistake_of_every_file_is_listed_with_its_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    one = _file(tmp_path, document(start(), agent("a", userPromt=""), routes=[way("start > b")]))
    two = _file(tmp_path, "{", "two.json")
    missing = str(tmp_path / "none.json")
    assert main(["workflow", "check", one, two, missing, str(TRIAGE)]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{one}: node a: data.userPromt: there is no such field; did you mean userPrompt?"
    assert lines[1] == f"{one}: connections[0] (start -> b): target: there is no node 'b'"
    assert lines[2].startswith(f"{two}: the document is not JSON")
    assert lines[3] == f"{missing}: there is no such file"
    assert lines[4].startswith(f"{TRIAGE}: no mistakes; 8 of 8 nodes")
    assert lines[5].startswith(f"{TRIAGE}: every path ends, no branch is lost and each step happens once: 7 ")


def test_a_circle_that_never_ends_is_shown_by_its_steps_and_its_picture(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    routes = [way("start > a"), way("a > b"), way("b > a")]
    file = _file(tmp_path, document(start(), agent("a"), agent("b"), routes=routes))
    assert main(["workflow", "check", file]) == 2
    assert capsys.readouterr().out.splitlines() == [
        f"{file}: no mistakes; 3 of 3 nodes are reached",
        f"{file}: this path never ends: a -> b -> a; add a condition or an approval that leads out",
        "    1. start",
        "    2. a",
        "    3. b",
        "       and so on from step 2",
        "    flowchart TD",
        '        s1["1#46; start"]',
        '        s2["2#46; a"]',
        '        s3["3#46; b"]',
        "        s1 --> s2",
        "        s2 --> s3",
        "        s3 -.-> s2",
    ]


def test_conditions_in_a_circle_are_shown_with_what_happens_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    routes = [way("start > a"), way("a > if"), way("if > if", "condition-0")]
    file = _file(tmp_path, document(start(), agent("a"), choice("if", ("contains", "yes")), routes=routes))
    assert main(["workflow", "check", file]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith(f"{file}: this path never ends: if -> if; nothing between these conditions")
    assert lines[2:4] == ["    1. start", '    2. a answers "yes"']
    assert lines[-1] == "        s2 --> wrong"


def test_the_bound_of_the_states_is_said_and_must_be_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workflow", "check", "--bound", "2", str(TRIAGE)]) == 0
    said = capsys.readouterr().out.splitlines()[1]
    assert "the bound was reached, so there is more that was not looked at: --bound N" in said
    with pytest.raises(SystemExit) as refused:
        main(["workflow", "check", "--bound", "0", str(TRIAGE)])
    assert refused.value.code == 2
    assert "0 is no number of states; write a whole number from 1 on" in capsys.readouterr().err


def test_a_model_that_a_document_names_is_said_not_to_be_used(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = _file(tmp_path, document(start(), agent("a", model="gpt-5"), routes=[way("start > a")]))
    assert main(["workflow", "check", file]) == 0
    assert "it names gpt-5; the model of your configuration answers" in capsys.readouterr().out


def test_a_workflow_is_drawn_with_its_conditions_decisions_and_sub_agents(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    nodes = (
        start(),
        choice("if", ("equal", "why")),
        agent("a", name="Ann", tools={"subagents": True}),
        agent("helper"),
        approval("ok", prompt="Good?"),
    )
    routes = [
        way("start > if"),
        way("if > a", "condition-0"),
        way("if > ok", "false"),
        way("ok > a", "approve"),
    ]
    file = _file(tmp_path, document(*nodes, routes=[*routes, way("a > helper", "subagent")]))
    assert main(["workflow", "show", file]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "flowchart TD",
        '    n_start(("start"))',
        '    n_if{"if"}',
        '    n_a["a<br/>Ann"]',
        '    n_helper["helper"]',
        '    n_ok{{"ok<br/>Good?"}}',
        "    n_start --> n_if",
        '    n_if -->|"equal why"| n_a',
        '    n_if -->|"otherwise"| n_ok',
        '    n_ok -->|"approve"| n_a',
        '    n_a -.->|"sub-agent"| n_helper',
    ]
    assert main(["graph", "show", file]) == 0
    assert '    n_ok -->|"AfterApproval"| n_a\n' in capsys.readouterr().out


def test_an_older_document_is_printed_in_the_form_of_today(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    old = {"id": "if", "type": "if", "data": {"condition": "x"}}
    routes = [way("start > if"), way("if > a", "true")]
    file = _file(tmp_path, document(start(), old, agent("a"), routes=routes))
    assert main(["workflow", "show", file, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["nodes"][1]["data"] == {"conditions": [{"operator": "contains", "value": "x"}]}
    assert printed["connections"][1]["sourceHandle"] == "condition-0"


def test_a_picture_of_a_document_with_mistakes_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = _file(tmp_path, document(agent("a")))
    assert main(["workflow", "show", file]) == 2
    assert f"{file}: workflow own: nodes: there is no start node" in capsys.readouterr().err


def test_a_run_in_the_terminal_asks_takes_the_answer_and_prints_its_log(tmp_path: Path) -> None:
    nodes = (start(), agent("a", userPrompt="draft"), approval("ok", prompt="Good?"))
    routes = [way("start > a"), way("a > ok"), way("ok > a", "reject")]
    file = _file(tmp_path, document(*nodes, routes=routes))
    done = parlour(tmp_path, "workflow", "run", file, *SCRIPTED, typed="go\napprove\n")
    assert done.returncode == 0, done.stderr
    assert "Good?" in done.stdout
    assert "You said: draft" in done.stdout
    log = [line.split() for line in done.stderr.splitlines() if line.startswith(("ok", "a ", "start"))]
    assert ["ok", "input_received", "User", "approved", "this", "step."] in log


def test_a_run_of_one_message_can_be_printed_as_json(tmp_path: Path) -> None:
    file = _file(tmp_path, document(start(), agent("a"), routes=[way("start > a")]))
    done = parlour(tmp_path, "workflow", "run", file, "--input", "hello", "--json", *SCRIPTED)
    assert done.returncode == 0, done.stderr
    assert "You said: hello" in done.stdout
    record = json.loads(done.stderr[done.stderr.index("{\n") :])
    assert (record["status"], record["state"]["a"]) == ("completed", "You said: hello")


def test_a_playbook_is_checked_and_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    sub = node("sub-workflow", "sub", workflow="child.playbook.json")
    child = playbook(trigger(), step("c"), edges=route("start > c"))
    _file(tmp_path, child, "child.playbook.json")
    good = _file(tmp_path, playbook(trigger(), sub, step("late"), edges=route("start > sub")), "good.json")
    wrong = _file(tmp_path, playbook(trigger(), node("wait", "w"), edges=route("start > w")), "wrong.json")
    assert main(["workflow", "check", good, wrong]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"{good}: no mistakes; 2 of 3 nodes are reached",
        f"{good}: it uses child.playbook.json",
        f"{wrong}: node w: config.amount: must be above 0, and at most 400 days",
    ]
    assert main(["workflow", "show", good]) == 0
    assert "sub-workflow: child.playbook.json" in capsys.readouterr().out
    assert main(["workflow", "show", "--json", good]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "book"


def test_a_playbook_is_run_and_its_events_are_printed(tmp_path: Path) -> None:
    file = _file(tmp_path, playbook(trigger(), step("a"), edges=route("start > a")))
    done = parlour(tmp_path, "workflow", "run", file, "--input", "hello", *SCRIPTED)
    assert done.returncode == 0, done.stderr
    assert ": completed" in done.stderr
    assert "workflow_completed" in done.stderr
