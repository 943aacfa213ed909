"""`parlour graph`: pictures and documents of graphs, and words about those that have mistakes."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from gateway.cli.main import main
from pipeline.graph.documents.reader import MAX_BYTES
from pipeline.topologies import shipped_graphs
from tests.cli.test_commands import parlour

EXAMPLE = Path(__file__).parents[1] / "pipeline" / "graph" / "documents" / "graphs" / "support.json"
"""A document that names a program's own functions."""


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """The lines of a refusal: exit code 2, nothing printed, no traceback."""
    assert main(["graph", "show", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert lines
    assert all(line.startswith("parlour: ") for line in lines)
    return lines


def test_without_a_name_it_lists_the_shipped_graphs(tmp_path: Path) -> None:
    done = parlour(tmp_path, "graph", "show")
    assert (done.returncode, done.stderr) == (0, "")
    first, *others = done.stdout.splitlines()
    assert first == "conversation (also agent, general)"
    assert ["conversation", *(line.partition(" (also ")[0] for line in others)] == list(shipped_graphs())
    assert others[-1] == "heartbeat (also overlord)"


@pytest.mark.parametrize("name", list(shipped_graphs()))
def test_every_shipped_graph_is_drawn(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["graph", "show", name]) == 0
    assert capsys.readouterr().out.startswith("flowchart TD\n")
    assert shipped_graphs()[name]().name == name


def test_the_conversation_is_drawn_with_its_route(capsys: pytest.CaptureFixture[str]) -> None:
    main(["graph", "show", "conversation"])
    assert '    n_agent -->|"after_agent"| n_agent\n' in capsys.readouterr().out


def test_a_file_is_drawn_without_its_functions(tmp_path: Path) -> None:
    done = parlour(tmp_path, "graph", "show", str(EXAMPLE))
    assert (done.returncode, done.stderr) == (0, "")
    assert '    n_ask_person{{"ask_person"}}\n' in done.stdout


def test_with_json_it_prints_a_document_that_it_reads_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["graph", "show", str(EXAMPLE), "--json"]) == 0
    first = capsys.readouterr().out
    again = tmp_path / "again.json"
    again.write_text(first, "utf-8")
    assert main(["graph", "show", str(again), "--json"]) == 0
    assert capsys.readouterr().out == first
    assert json.loads(first)["nodes"][0]["run"] == "classify"


def test_json_of_a_shipped_graph_names_its_functions(capsys: pytest.CaptureFixture[str]) -> None:
    main(["graph", "show", "conversation", "--json"])
    edges = json.loads(capsys.readouterr().out)["edges"]
    assert edges[1]["when"] == {"route": "after_agent", "targets": ["end", "act", "agent"]}


def test_every_mistake_of_a_file_is_a_line_with_its_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"name": "x", "entri": "a", "nodes": [{"id": 7}]}')
    lines = refused(capsys, str(wrong))
    place = f"parlour: {wrong}: graph x: "
    assert f"{place}entri: there is no such field; did you mean entry?" in lines
    assert f"{place}nodes[0].id: expected a text, but a whole number was given" in lines
    assert f"{place}entry: is missing" in lines


def test_mistakes_of_the_graph_itself_are_lines_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"name": "x", "entry": "a", "nodes": [{"id": "b"}, {"id": "c"}]}')
    lines = refused(capsys, str(wrong))
    assert [line for line in lines if "entry a: no such node" in line]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"name": "x",\n "entry" "a"}', "line 2, column 10"),
        (b"\xff\xfe", "is not UTF-8 text (byte 0)"),
        (b"[]", "must be a JSON object"),
        (b" " * (MAX_BYTES + 1), f"is larger than {MAX_BYTES} bytes"),
    ],
)
def test_a_file_that_is_no_document_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes, words: str
) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_bytes(content)
    (line,) = refused(capsys, str(wrong))
    assert str(wrong) in line
    assert words in line


def test_a_byte_order_mark_does_no_harm(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    marked = tmp_path / "marked.json"
    marked.write_bytes(b"\xef\xbb\xbf" + EXAMPLE.read_bytes())
    assert main(["graph", "show", str(marked)]) == 0
    assert "n_classify" in capsys.readouterr().out


def test_what_is_neither_a_file_nor_shipped_is_reported_with_what_there_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (line,) = refused(capsys, "conversatoin")
    assert "conversatoin: there is no such file, and no graph of that name" in line
    assert line.endswith("there are: conversation, sub_agent, companion, heartbeat")
    (folder,) = refused(capsys, str(tmp_path))
    assert "cannot be read" in folder
    (null,) = refused(capsys, "a\0b")
    assert "cannot be read" in null


def test_a_terminal_that_cannot_show_a_character_gets_its_code(tmp_path: Path) -> None:
    fancy = tmp_path / "fancy.json"
    fancy.write_text('{"name": "x", "entry": "\u00e9", "nodes": [{"id": "\u00e9"}]}', "utf-8")
    screen = io.BytesIO()
    terminal = io.TextIOWrapper(screen, encoding="ascii", write_through=True)
    with redirect_stdout(terminal):
        assert main(["graph", "show", str(fancy)]) == 0
    assert b'["\\xe9"]' in screen.getvalue()


@pytest.mark.parametrize("arguments", [("graph",), ("graph", "paint"), ("graph", "show", "a", "b")])
def test_a_wrong_command_line_says_how_it_goes(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = parlour(tmp_path, *arguments)
    assert done.returncode == 2
    assert "usage: parlour" in done.stderr


def test_a_document_is_run_in_the_terminal_whatever_channels_and_routes_there_are(tmp_path: Path) -> None:
    document = tmp_path / "shout.json"
    say = {"id": "say", "run": "reply", "with": {"text": "{message}!"}}
    document.write_text(json.dumps({"name": "shout", "entry": "say", "nodes": [say]}), "utf-8")
    config = tmp_path / "parlour.toml"
    config.write_text(
        '[agents.shop]\ndescription = "x"\n[[routes]]\nagent = "shop"\n'
        '[llm]\nmodel = "scripted:echo"\n[voice]\ntranscriber = "scripted:hello"\n'
        f'[[channels.telegram]]\ntoken = "file:{tmp_path / "token"}"\n'
        f'[[channels.telegram]]\naccount = "shop"\ntoken = "file:{tmp_path / "second"}"\n'
    )
    for name, number in (("token", "123456"), ("second", "123457")):
        (tmp_path / name).write_text(f"{number}:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
        (tmp_path / name).chmod(0o600)
    done = parlour(tmp_path, "graph", "run", str(document), "tea", "--config", str(config))
    assert (done.returncode, done.stdout.strip()) == (0, "tea!")
    assert [line.split()[1] for line in done.stderr.splitlines()[2:]] == ["intake", "say"]
    assert not (tmp_path / "data").exists()


def test_mistakes_of_a_document_are_said_before_it_is_run(tmp_path: Path) -> None:
    document = tmp_path / "bad.json"
    document.write_text('{"name": "bad", "entry": "say", "nodes": [{"id": "say", "run": "shout"}]}')
    done = parlour(tmp_path, "graph", "run", str(document), "tea")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no node function called 'shout' here" in done.stderr
