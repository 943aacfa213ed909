"""What the doctor finds about voice, skills, tool servers, models; the rest is the command line's tests."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from adapters.api.adapter import GUARANTEE
from gateway.app.bus import bus_state
from gateway.app.shell import shell_state
from gateway.cli.doctor import delivery_guarantees, doctor, findings
from gateway.cli.findings import Finding
from gateway.config import load
from pipeline.domain.clock import SystemClock
from tests.pipeline.tools.web_server import Handler, says, serving
from tests.support.api_client import api_overrides, webhook_overrides
from tests.support.evaluators import evaluating
from tests.support.onnx_files import write_classifier
from tests.support.openai_server import Behaviour, FakeOpenAiServer
from tests.support.transcription_server import FakeTranscriptionServer
from tests.support.valkey import Valkey

NOWHERE = Path("/dev/null")


async def _not_tried(*_: object) -> Finding:
    return Finding(name="file reader", good=True, words="not tried")


async def examined(tmp_path: Path, *overrides: str, reader: bool = False) -> dict[str, Finding]:
    """What is found. Without `reader`, the process that reads files is not started: that takes longer than
    everything else together."""
    (tmp_path / "models").mkdir()
    usual = (
        f"data.dir={json.dumps(str(tmp_path / 'data'))}",
        f"models.dir={json.dumps(str(tmp_path / 'models'))}",
        "server.port=0",
        'llm.model="scripted:echo"',
        'voice.transcriber="scripted:hello"',
        'tools.search.backend="none"',
    )
    settings = load(NOWHERE, {}, [*usual, *overrides])
    with pytest.MonkeyPatch.context() as patch:
        if not reader:
            patch.setattr("gateway.cli.doctor._file_reader", _not_tried)
        return {finding.name: finding async for finding in findings(settings, SystemClock())}


async def test_an_endpoint_that_hears_is_asked_and_judged(tmp_path: Path) -> None:
    async with FakeTranscriptionServer() as server:
        key = tmp_path / "key"
        key.write_text("secret")
        key.chmod(0o600)
        found = await examined(
            tmp_path,
            'voice.transcriber="openai/whisper-1"',
            f'voice.api_base="{server.api_base}"',
            f'voice.api_key="file:{key}"',
        )
        assert len(server.requests) == 1
    assert not found["voice"].good
    assert 'was heard as "Hello from the service."' in found["voice"].words


async def test_the_added_languages_of_the_page_are_checked(tmp_path: Path) -> None:
    folder = tmp_path / "languages"
    folder.mkdir()
    (folder / "pt.json").write_text(json.dumps({"language": "Português", "save": "Guardar", "sava": "x"}))
    found = (await examined(tmp_path, f"channels.web.texts={json.dumps(str(folder))}"))["page languages"]
    assert not found.good
    assert found.words.startswith(
        "Português (pt); pt.json: sava: the page has no text with this key; remove it; "
        "pt.json: shown in English, because they are missing: not_connected, "
    )


async def test_the_file_reader_is_started_and_tried(tmp_path: Path) -> None:
    found = await examined(tmp_path, reader=True)
    assert found["file reader"].good
    assert found["file reader"].words.startswith("reads pictures and documents in a sandbox; ready after ")


async def test_a_file_reader_that_does_not_start_is_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/python")
    found = await examined(tmp_path, reader=True)
    assert not found["file reader"].good
    assert found["file reader"].words == (
        "pictures and documents cannot be read: "
        "the program /no/python could not be started: No such file or directory"
    )


async def test_the_web_search_is_tried_once_and_a_server_that_is_gone_is_red(tmp_path: Path) -> None:
    tea = {"results": [{"title": "Tea", "url": "https://tea.example/"}]}
    pages: dict[str, Handler] = {"/search": says(json.dumps(tea), content_type="application/json")}
    async with serving(pages) as site:
        settings = ('tools.search.backend="searxng"', f'tools.search.url="http://127.0.0.1:{site.port}"')
        found = (await examined(tmp_path, *settings))["web search"]
        assert (found.good, found.words) == (True, "SearXNG found a page")
        assert len(site.requests) == 1
        site.pages["/search"] = says("no", status=500)
        shutil.rmtree(tmp_path / "models")
        found = (await examined(tmp_path, *settings))["web search"]
        assert (found.good, found.words) == (
            False,
            "The web was not searched. SearXNG answers with status 500.",
        )
    shutil.rmtree(tmp_path / "models")
    found = (await examined(tmp_path, *settings))["web search"]
    assert (found.good, found.words.partition(":")[0]) == (
        False,
        "off, and not offered to the model, as the search engine cannot be reached",
    )
    shutil.rmtree(tmp_path / "models")
    off = (await examined(tmp_path))["web search"]
    assert (off.good, off.words) == (True, "switched off")


async def test_no_voice_is_no_fault_and_says_how_to_get_one(tmp_path: Path) -> None:
    found = (await examined(tmp_path))["reading aloud"]
    assert found.good
    assert "`parlour models get voice-en`" in found.words
    (tmp_path / "off").mkdir()
    off = (await examined(tmp_path / "off", "voice.replies.enabled=false"))["reading aloud"]
    assert (off.good, off.words) == (True, "switched off (voice.replies.enabled)")


async def test_a_skill_that_cannot_be_used_is_red_and_says_why(tmp_path: Path) -> None:
    assert (await examined(tmp_path))["skills"] == Finding(name="skills", good=True, words="none")
    skills = tmp_path / "data" / "workspace" / "skills"
    for name in ("water-plants", "Broken"):
        (skills / name).mkdir(parents=True)
        text = "---\nname: water-plants\ndescription: When to water\n---\nOn Mondays.\n"
        (skills / name / "SKILL.md").write_text(text)
    shutil.rmtree(tmp_path / "models")
    found = (await examined(tmp_path))["skills"]
    assert not found.good
    assert found.words.startswith("water-plants; ")
    assert "name: it is water-plants, and the folder's name is Broken" in found.words


async def test_an_mcp_server_whose_reference_cannot_be_read_is_red_and_none_is_started(
    tmp_path: Path,
) -> None:
    file = tmp_path / "mcp.json"
    server = {"command": "/nowhere/tracker", "env": {"TOKEN": "file:token"}}
    file.write_text(json.dumps({"mcpServers": {"tracker": server}}))
    setting = f"tools.mcp_file={json.dumps(str(file))}"
    found = (await examined(tmp_path, setting))["MCP servers"]
    assert (found.good, "file:token" in found.words) == (False, True)
    (tmp_path / "token").write_text("t0ken")
    (tmp_path / "token").chmod(0o600)
    shutil.rmtree(tmp_path / "models")
    assert (await examined(tmp_path, setting))["MCP servers"].words == "tracker"


async def test_the_backend_of_the_cheaper_model_is_shown_and_tried(tmp_path: Path) -> None:
    found = await examined(tmp_path, 'budget.cheaper_model="scripted:echo:delay=0.01"')
    assert found["model"].words.startswith("the shipped fake (echo)")
    assert found["cheaper model"].words.startswith(
        'the shipped fake (echo:delay=0.01), no real model; said "'
    )
    assert found["cheaper model"].good


async def test_a_voice_that_is_damaged_is_red(tmp_path: Path) -> None:
    broken = tmp_path / "voices"
    broken.mkdir()
    (broken / "en_US-x-low.onnx").write_bytes(b"no model")
    (broken / "en_US-x-low.onnx.json").write_text('{"language": {"code": "en_US"}}')
    found = (await examined(tmp_path, f"voice.replies.voices_path={json.dumps(str(broken))}"))[
        "reading aloud"
    ]
    assert not found.good
    assert found.words


async def test_a_voice_that_an_agent_names_and_that_is_not_there_is_red(tmp_path: Path) -> None:
    folder = tmp_path / "voices"
    folder.mkdir()
    (folder / "en_US-x-low.onnx").write_bytes(b"no model")
    (folder / "en_US-x-low.onnx.json").write_text('{"language": {"code": "en_US"}}')
    given = (
        f"voice.replies.voices_path={json.dumps(str(folder))}",
        'agent.voice="en_US-x-low"',
        'agents.shop.voice="de_DE-y-low"',
    )
    found = (await examined(tmp_path, *given))["reading aloud"]
    assert not found.good
    assert found.words == (
        f"agents.shop.voice names de_DE-y-low, but {folder} has en_US-x-low: add the voice's two files"
    )


class _Refusing(BaseHTTPRequestHandler):
    """A provider that repeats keys in its refusal, as some do."""

    def do_POST(self) -> None:
        body = json.dumps({"error": {"message": f"no such key: {OTHER_KEY}"}}).encode()
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_line: object) -> None:
        """Say nothing."""


OTHER_KEY = "gsk_" + "a1B2c3D4e5" * 4


def test_what_a_provider_says_is_printed_without_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        overrides = (
            f"data.dir={json.dumps(str(tmp_path / 'data'))}",
            f"models.dir={json.dumps(str(tmp_path / 'models'))}",
            'llm.model="openai/some"',
            f'llm.api_base="http://127.0.0.1:{server.server_port}/v1"',
            'voice.transcriber="scripted:hello"',
            "voice.replies.enabled=false",
        )
        assert doctor(NOWHERE, overrides) == 1
    finally:
        server.shutdown()
        server.server_close()
    printed = capsys.readouterr().out
    assert OTHER_KEY[4:] not in printed
    assert "BAD  model:" in printed


@pytest.mark.parametrize(("problem", "good"), [("", True), ("new namespaces: refused; see the guide", False)])
def test_the_doctor_says_whether_commands_can_be_run_where_the_settings_want_it(
    monkeypatch: pytest.MonkeyPatch, problem: str, *, good: bool
) -> None:
    monkeypatch.setattr("gateway.app.shell.sandbox_problem", lambda: problem)
    wanted = load(None, {}, ['tools.groups=["shell"]'])
    assert shell_state(wanted) == (good, problem or "run in a sandbox of namespaces, without network")
    assert shell_state(load(None, {}, [])) == (True, 'not used ("shell" is not in tools.groups)')


async def test_the_evaluator_is_asked_once_and_is_green_only_with_its_canary(tmp_path: Path) -> None:
    assert "evaluator" not in await examined(tmp_path)
    async with FakeOpenAiServer(brain=evaluating("ESCALATE")) as judge:
        settings = (
            'shield.evaluator="openai_compatible/judge"',
            f'shield.evaluator_api_base="{judge.api_base}"',
            "llm.retries=0",
        )
        shutil.rmtree(tmp_path / "models")
        found = (await examined(tmp_path, *settings))["evaluator"]
        assert found.good
        assert found.words.startswith(
            "openai_compatible/judge: asked whether a note may be kept, it said ESCALATE with its canary "
        )
        assert len(judge.requests) == 1
        judge.brain = None
        for behaviour, words in (
            (
                Behaviour(chunks=("ALLOW",)),
                "the evaluator's answer cannot be read, so it does not count; until",
            ),
            (
                Behaviour(status=401),
                "the evaluator could not be asked (The provider of model 'openai_compatib",
            ),
        ):
            judge.default = behaviour
            shutil.rmtree(tmp_path / "models")
            found = (await examined(tmp_path, *settings))["evaluator"]
            assert not found.good
            assert found.words.startswith(f"openai_compatible/judge: {words}")
            assert found.words.endswith("; until then a person is asked at tier 2")


async def test_the_operators_classifier_is_loaded_and_scores_two_texts(tmp_path: Path) -> None:
    assert "classifier" not in await examined(tmp_path)
    folder = write_classifier(tmp_path / "classifier")
    shutil.rmtree(tmp_path / "models")
    found = (await examined(tmp_path, f'shield.classifier="{folder}"'))["classifier"]
    assert found.good, found.words
    assert "for an attack, threshold 0.5" in found.words
    write_classifier(folder, words={"library": 5.0})
    shutil.rmtree(tmp_path / "models")
    found = (await examined(tmp_path, f'shield.classifier="{folder}"'))["classifier"]
    assert not found.good
    assert found.words.endswith("it does not tell them apart")
    (folder / "model.onnx").write_bytes(b"nothing")
    shutil.rmtree(tmp_path / "models")
    found = (await examined(tmp_path, f'shield.classifier="{folder}"'))["classifier"]
    assert not found.good
    assert found.words.startswith("shield.classifier: ")
    assert "model.onnx is no model that can be run" in found.words


async def test_the_crisis_classifier_is_asked_once_and_is_green_only_in_its_form(tmp_path: Path) -> None:
    assert "crisis classifier" not in await examined(tmp_path)
    shutil.rmtree(tmp_path / "models")
    calm = '{"level": 0, "confidence": "high", "code": "none"}'
    async with FakeOpenAiServer(default=Behaviour(chunks=(calm,))) as judge:
        settings = (
            'safety.classifier="openai_compatible/judge"',
            f'safety.classifier_api_base="{judge.api_base}"',
            "llm.retries=0",
        )
        found = (await examined(tmp_path, *settings))["crisis classifier"]
        assert found.good
        assert found.words.startswith("asked about soup, it said level 0 after ")
        assert len(judge.requests) == 1
        for behaviour in (Behaviour(chunks=("0",)), Behaviour(status=401)):
            judge.default = behaviour
            shutil.rmtree(tmp_path / "models")
            found = (await examined(tmp_path, *settings))["crisis classifier"]
            assert not found.good
            assert found.words == "gave no answer in its form and time; until it does, the rules judge alone"


async def test_the_api_and_who_may_use_it_are_listed(tmp_path: Path) -> None:
    given = [*api_overrides(tmp_path), *webhook_overrides(tmp_path), "channels.web.enabled=false"]
    found = await examined(tmp_path, *given)
    assert found["port"].good
    assert found["API"].words.startswith("workflows: triage; tokens: ci (run, read, answer), other (")
    assert found["API"].words.endswith("; webhooks: issues")
    settings = load(NOWHERE, {}, given)
    assert ("api", GUARANTEE) in delivery_guarantees(settings)


async def test_the_workflow_editor_and_saved_workflows_are_checked(tmp_path: Path) -> None:
    found = await examined(tmp_path, 'channels.web.editor=["owner"]', 'agent.graph="saved:letters"')
    assert found["workflow editor"] == Finding(name="workflow editor", good=True, words="open to owner")
    assert "saved:letters: no such workflow is saved" in found["saved workflows"].words


async def test_the_bus_is_tried_where_a_server_carries_it(tmp_path: Path) -> None:
    url = tmp_path / "url"
    settings = ('bus.kind="redis"', f'bus.url="file:{url}"')
    async with Valkey(tmp_path, password="never shown") as server:
        url.write_text(server.url)
        url.chmod(0o600)
        found = await examined(tmp_path, *settings)
    assert found["bus"].good
    assert found["bus"].words.startswith("redis carries a signal in ")
    state = await bus_state(load(NOWHERE, {}, settings), SystemClock())
    assert state == (False, "redis cannot be reached (ConnectionError); look at bus.url and the server")
    assert await bus_state(load(NOWHERE, {}, []), SystemClock()) is None
