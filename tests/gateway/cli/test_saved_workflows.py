"""`parlour workflow list | import | export`, beside a gateway that runs and without one.

Covers: gateway/cli/saved_workflows.py, gateway/cli/workflow_arguments.py.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from gateway.cli.main import main
from tests.pipeline.workflows.documents import agent, document, start, way
from tests.support.page_people import Client, open_page
from tests.support.workflow_child import triage_model

TRIAGE = Path("examples/workflows/triage.workflow.json")
EXAMPLE = json.loads(TRIAGE.read_text("utf-8"))
ONE = document(start(), agent("a"), routes=[way("start > a")])


def _run(folder: Path, *words: str) -> int:
    return main(["workflow", *words, "--set", f'data.dir="{folder}"'])


async def test_a_file_is_imported_and_exported_beside_a_running_gateway(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with (
        open_page(tmp_path, 'channels.web.editor=["owner"]', llm=triage_model("refund")) as page,
        Client() as client,
    ):
        await client.connect(page.url, page.owner_token)
        assert await asyncio.to_thread(_run, tmp_path, "list") == 0
        assert "no workflow is saved yet" in capsys.readouterr().err
        assert await asyncio.to_thread(_run, tmp_path, "import", str(TRIAGE)) == 0
        assert capsys.readouterr().out == "triage is saved as version 1\n"
        opened = await client.ask(type="workflow_open", name="triage")
        assert opened["document"] == EXAMPLE
        saved = await client.ask(type="workflow_save", name="triage", base=1, document=ONE)
        assert saved["version"] == 2
        assert await asyncio.to_thread(_run, tmp_path, "import", str(TRIAGE), "Other one") == 0
        assert capsys.readouterr().out == "Other one is saved as version 1\n"
    assert await asyncio.to_thread(_run, tmp_path, "list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[:2] for line in lines] == [["Other one", "version 1"], ["triage", "version 2"]]
    assert await asyncio.to_thread(_run, tmp_path, "export", "triage") == 0
    assert json.loads(capsys.readouterr().out) == ONE
    assert await asyncio.to_thread(_run, tmp_path, "export", "triage", "--version", "1") == 0
    assert json.loads(capsys.readouterr().out) == EXAMPLE


async def test_what_cannot_be_done_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await asyncio.to_thread(_run, tmp_path, "list") != 0
    assert "there is no store yet" in capsys.readouterr().err
    async with open_page(tmp_path):
        pass
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(document(start())), "utf-8")
    assert await asyncio.to_thread(_run, tmp_path, "import", str(wrong)) == 2
    assert "nothing follows the start" in capsys.readouterr().out
    assert await asyncio.to_thread(_run, tmp_path, "import", str(TRIAGE), "a/b") != 0
    assert "cannot be the name of a saved workflow" in capsys.readouterr().err
    assert await asyncio.to_thread(_run, tmp_path, "export", "triage") != 0
    assert "no such workflow" in capsys.readouterr().err
