"""A configured secret that lies on a place where a tool's words are cut is not halved by the cut."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline.domain.clock import SystemClock
from pipeline.domain.events import ActionCompleted
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.scope import TurnScope
from pipeline.tools.confine import person_folder
from pipeline.tools.files import files_group
from pipeline.tools.gate import RESULT_CHARS
from pipeline.tools.notes import notes_group
from pipeline.tools.tool import ToolFailed, ToolOutput
from pipeline.tools.web import MAX_TEXT_CHARS, WebGroup
from tests.pipeline.tools.web_server import guarded, says, serving
from tests.support.contexts import Watched, scope
from tests.support.tool_gate import call, gate, group, propose, tool

SECRET = "Zq7-horse-battery-staple"
REDACTOR = Redactor(lambda: (SECRET,))
BEGUN = SECRET[:6]


def _reported(before: int, behind: str = " and more" * 2_000) -> str:
    words = "word " * (before // 5) + "w" * (before % 5)
    return f"{words}{SECRET}{behind}"


def _around(cut: int) -> range:
    return range(cut - len(SECRET) - 2, cut + 3)


@pytest.mark.parametrize("failing", [False, True], ids=["result", "failure"])
@pytest.mark.parametrize("cut", [RESULT_CHARS, 80], ids=["content", "summary"])
async def test_the_gate_shows_no_half_of_it(cut: int, failing: bool) -> None:
    async def run(arguments: Mapping[str, Any], _scope: TurnScope) -> ToolOutput:
        text = _reported(int(arguments["text"]))
        if failing:
            raise ToolFailed(text)
        return ToolOutput(text=text)

    one = gate(group(tool("look", run, reads_only=True)), redactor=REDACTOR)
    for before in _around(cut):
        watched = Watched()
        (result,) = await propose(one, call("look", {"text": str(before)}), scope=scope(watched))
        (done,) = [event for event in watched.events if isinstance(event, ActionCompleted)]
        for shown in (result.content, result.summary, done.summary):
            assert BEGUN not in shown


async def test_a_text_that_the_tool_itself_has_cut_ends_before_it() -> None:
    async def run(arguments: Mapping[str, Any], _scope: TurnScope) -> ToolOutput:
        return ToolOutput(text=f"The key is {SECRET[: int(arguments['text'])]}", left_out=5)

    one = gate(group(tool("look", run, reads_only=True, own_words=True)), redactor=REDACTOR)
    for chars in range(1, len(SECRET)):
        (result,) = await propose(one, call("look", {"text": str(chars)}), scope=scope())
        assert result.content.startswith("The key is \n[")
        assert result.content.endswith("more characters are not shown]")


async def test_a_page_shows_no_half_of_it_in_its_title_its_text_and_its_links() -> None:
    begin = len("Address: http://site.example:65535/\n\n")
    pages = {f"/t{at}": says(f"<title>{_reported(at)}</title><p>x") for at in _around(300)}
    pages |= {
        f"/l{at}": says(f'<p>x</p><a href="/a">{_reported(at, " more" * 20)}</a>') for at in _around(80)
    }
    cuts = range(MAX_TEXT_CHARS - begin - 60 - len(SECRET), MAX_TEXT_CHARS - begin + 10)
    pages |= {f"/p{at}": says(f"<p>{_reported(at)}") for at in cuts}
    async with serving(pages) as site:
        (fetch,) = await WebGroup(guarded(site), SystemClock(), REDACTOR).tools(scope())
        for path in pages:
            text = (await fetch.run({"url": site.url(path)}, scope())).text
            assert BEGUN not in text
            assert len(text) <= MAX_TEXT_CHARS


async def test_hits_and_lists_of_notes_show_no_half_of_it(tmp_path: Path) -> None:
    folder = person_folder(tmp_path, scope().owner) / "files"
    folder.mkdir(parents=True)
    tools = {
        one.name: one
        for one in (*files_group(tmp_path, REDACTOR).fixed, *notes_group(tmp_path, REDACTOR).fixed)
    }
    for before in _around(160):
        (folder / "a.txt").write_text(f"{_reported(before)}\n", encoding="utf-8")
        assert BEGUN not in (await tools["search_files"].run({"text": "word"}, scope())).text
    for before in _around(80):
        await tools["write_note"].run({"title": "a", "text": _reported(before)}, scope())
        listed = (await tools["read_notes"].run({}, scope())).text
        assert listed.startswith("a: word")
        assert BEGUN not in listed


PEM_LINES = (
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj",
    "AgEAAoIBAQC7VJTUt9Us8cKjMzEfYyjiWA4R4ztQ",
    "QmFyQ0FB+w==",
)
MARKS = (("-----BEGIN ", "-----END "), ("-----BEGIN RSA ", "-----END RSA "))


@pytest.mark.parametrize(("begin", "end"), MARKS, ids=["plain", "rsa"])
async def test_a_file_from_the_middle_of_a_private_key_on_and_hits_in_it_show_none_of_it(
    tmp_path: Path, begin: str, end: str
) -> None:
    folder = person_folder(tmp_path, scope().owner) / "files"
    folder.mkdir(parents=True)
    key = "\n".join((f"{begin}PRIVATE KEY-----", *PEM_LINES, f"{end}PRIVATE KEY-----"))
    text = f"the first line\n{key}\nafter the key\n{PEM_LINES[0]}"
    (folder / "k.txt").write_text(text, encoding="utf-8")
    tools = {one.name: one for one in files_group(tmp_path, Redactor()).fixed}
    for line in range(2, 7):
        shown = (await tools["read_file"].run({"path": "k.txt", "line": line}, scope())).text
        assert not [one for one in PEM_LINES if one in shown.partition("after the key")[0]]
        # Outside a key it is a line like any other.
        assert shown.endswith(f"after the key\n{PEM_LINES[0]}")
    assert "k.txt:7: after the key" in (await tools["search_files"].run({"text": "the key"}, scope())).text
    for one in PEM_LINES[1:]:
        hits = (await tools["search_files"].run({"text": one[:9]}, scope())).text
        assert one not in hits
        assert hits.startswith("No file has")
