"""Commands in a sandbox, from a message to the stored answer: in memory, on a platform, on the page.

Covers: pipeline/tools/shell.py, gateway/sandbox/commands.py, gateway/app/shell.py.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.storage.ports import Interaction
from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import SystemClock
from pipeline.domain.events import ActionProgress, ApprovalRequired, OtrBlocked
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author, InboundMessage, button_handle
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.gateway_process import free_port
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.platforms.platform import FakePlatform, Place
from tests.support.platforms.telegram import FakeTelegram
from tests.support.sandbox import processes_with, require_sandbox
from tests.support.web_client import WebChat

ON = ('tools.groups=["files", "system", "shell"]', "tools.shell.memory_mb=128")
LOAD = ScriptedAnswer.calling(ToolCall(id="l", name="load_tools", arguments='{"groups": ["shell"]}'))
_LONG = "echo begun; (setsid sleep {mark} &); trap '' TERM; sleep {mark}"


@pytest.fixture(autouse=True)
def _sandbox() -> None:
    require_sandbox()


def _calling(tool: str, call_id: str = "c", /, **arguments: Any) -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id=call_id, name=tool, arguments=json.dumps(arguments)))


def _llm(*answers: ScriptedAnswer | str) -> ScriptedLlm:
    return ScriptedLlm([ScriptedAnswer.of(one) if isinstance(one, str) else one for one in answers])


async def _until(holds: Callable[[], object]) -> None:
    """Wait until it holds: other processes have no event."""
    async with asyncio.timeout(60):
        while not holds():
            await SystemClock().sleep(0.02)


async def _allow(harness: GatewayHarness, number: int = 1) -> None:
    """Allow what the turn asks."""

    def asked() -> bool:
        return sum(isinstance(one, ApprovalRequired) for one in harness.channel.events) >= number

    await harness.channel.until(asked)
    (question,) = await harness.store.pending_interactions("console:local:c1", now=0.0)
    await harness.channel.bring(_press(question))


def _press(question: Interaction) -> ApprovalReply:
    return ApprovalReply(
        message_id=f"m_{question.id}",
        native_id=question.id,
        thread=ThreadKey.decode(question.thread),
        author=Author(id="owner"),
        received_at=1_700_000_000.0,
        interaction_id=button_handle(question.id),
        choice="",
        option=question.options.index("Allow"),
    )


def _results(llm: ScriptedLlm) -> list[str]:
    return [request.messages[-1].content for request in llm.requests]


async def test_a_command_runs_once_it_is_allowed_and_its_files_stay_for_the_next(tmp_path: Path) -> None:
    llm = _llm(
        *(LOAD, _calling("run_script", script="seq 3 > n; cat n"), "Made."),
        *(LOAD, _calling("run_command", command=["sort", "-rn", "n"]), "Sorted."),
    )
    async with open_gateway(tmp_path, *ON, llm=llm) as harness:
        for number, text in enumerate(("count", "sort it"), start=1):
            said = await harness.channel.say(text)
            await _allow(harness, number)
            await harness.channel.reply(said.message_id)
    results = _results(llm)
    assert "Exit status 0" in results[2]
    assert "n (6 bytes)" in results[2]
    assert "1\n2\n3" in results[2]
    assert "3\n2\n1" in results[5]


async def test_without_the_group_in_the_settings_there_is_none(tmp_path: Path) -> None:
    llm = _llm(LOAD, "No.")
    async with open_gateway(tmp_path, llm=llm) as harness:
        await harness.channel.reply((await harness.channel.say("run it")).message_id)
    assert "no tool group shell" in _results(llm)[1]
    assert not (tmp_path / "commands").exists()


async def test_where_the_machine_has_no_sandbox_the_gateway_says_so_and_runs_without_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gateway.app.shell.sandbox_problem", lambda: "new namespaces: refused")
    llm = _llm(LOAD, "No.")
    with caplog.at_level(logging.ERROR):
        async with open_gateway(tmp_path, *ON, llm=llm) as harness:
            await harness.channel.reply((await harness.channel.say("run it")).message_id)
    assert "no tool group shell" in _results(llm)[1]
    (record,) = [one for one in caplog.records if "shell is left out" in one.message]
    assert record.__dict__["reason"] == "new namespaces: refused"


async def test_stop_ends_the_whole_tree_and_the_folder_is_as_before(tmp_path: Path) -> None:
    script = "echo half > half;" + _LONG.format(mark="14142135")
    llm = _llm(
        LOAD, _calling("run_script", script=script), LOAD, _calling("run_script", script="ls"), "Done."
    )
    async with open_gateway(tmp_path, *ON, llm=llm) as harness:
        said = await harness.channel.say("take long")
        await _allow(harness)
        await _until(lambda: len(processes_with("14142135")) >= 2)
        await harness.channel.say("/stop")
        reply = await harness.channel.reply(said.message_id)
        assert "Stopped" in reply.text
        assert processes_with("14142135") == []
        said = await harness.channel.say("look")
        await _allow(harness, 2)
        await harness.channel.reply(said.message_id)
    assert "It wrote nothing" in _results(llm)[-1]


async def test_a_shutdown_ends_what_runs(tmp_path: Path) -> None:
    llm = _llm(LOAD, _calling("run_script", script=_LONG.format(mark="17320508")), "Done.")
    async with open_gateway(tmp_path, *ON, llm=llm, drain_s=0.1) as harness:
        await harness.channel.say("take long")
        await _allow(harness)
        await _until(lambda: len(processes_with("17320508")) >= 2)
    assert processes_with("17320508") == []


async def test_a_new_conversation_has_an_empty_folder_and_the_old_one_is_gone(tmp_path: Path) -> None:
    llm = _llm(
        *(LOAD, _calling("run_script", script="echo old > old"), "Made."),
        *(LOAD, _calling("run_script", script="ls"), "Looked."),
    )
    async with open_gateway(tmp_path, *ON, llm=llm) as harness:
        said = await harness.channel.say("make it")
        await _allow(harness)
        await harness.channel.reply(said.message_id)
        assert [path.name for path in (tmp_path / "commands").rglob("old")] == ["old"]
        await harness.channel.say("/new")
        await _until(lambda: not list((tmp_path / "commands").rglob("old")))
        said = await harness.channel.say("look")
        await _allow(harness, 2)
        await harness.channel.reply(said.message_id)
    assert "It wrote nothing" in _results(llm)[-1]


async def test_off_the_record_no_command_is_offered_or_run(tmp_path: Path) -> None:
    llm = _llm(LOAD, _calling("run_script", script="echo x > x"), "No.")
    async with open_gateway(tmp_path, *ON, llm=llm) as harness:
        await harness.channel.say("/otr")
        await harness.channel.reply((await harness.channel.say("run it")).message_id)
        assert any(isinstance(one, OtrBlocked) for one in harness.channel.events)
    offered = {tool.name for request in llm.requests for tool in request.tools}
    assert not {"run_script", "run_command"} & offered
    assert not list((tmp_path / "commands").rglob("x"))


async def test_what_a_command_writes_while_it_runs_is_shown_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.tools.shell.PROGRESS_S", 0.0)
    key = "sk-proj-" + "a1B2" * 12
    script = f"echo step 1 {key}; sleep 0.1; echo step 2"
    llm = _llm(LOAD, _calling("run_script", script=script), "Done.")
    async with open_gateway(tmp_path, *ON, llm=llm) as harness:
        said = await harness.channel.say("take long")
        await _allow(harness)
        await harness.channel.reply(said.message_id)
        shown = [one for one in harness.channel.events if isinstance(one, ActionProgress)]
    assert shown[0].line.startswith("step 1")
    assert shown[0].summary.startswith("Running the script")
    assert not any(key in one.line for one in shown)
    assert key not in _results(llm)[-1]


async def test_long_output_keeps_its_beginning_and_its_end_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    script = "printf 'first \\377\\033[31mred\\033[0m\\n'; seq 5000; echo last; exit 4"
    llm = _llm(LOAD, _calling("run_script", script=script), "Done.")
    async with open_gateway(tmp_path, *ON, llm=llm) as harness:
        said = await harness.channel.say("write much")
        await _allow(harness)
        await harness.channel.reply(said.message_id)
    result = _results(llm)[-1]
    assert "Exit status 4" in result
    assert "first \ufffdred\n1\n2\n" in result
    assert "characters are left out here" in result
    assert "5000\nlast" in result


async def test_while_one_chat_runs_bombs_another_gets_its_answer(tmp_path: Path) -> None:
    # Below the limit of processes, at which `sh` would end the script.
    bomb = "for at in $(seq 40); do (while :; do :; done) & done; wait # 22360679"
    llm = ScriptedLlm(
        [LOAD, _calling("run_script", script=bomb), ScriptedAnswer.of("Quick."), ScriptedAnswer.of("Over.")]
    )
    # No limit may end it before the other answer is there, however busy the machine is.
    limits = ("tools.shell.seconds=3600", "tools.shell.processor_seconds=36000")
    async with open_gateway(tmp_path, *ON, *limits, llm=llm) as harness:
        bombed = await harness.channel.say("bomb")
        await _allow(harness)
        await _until(lambda: len(processes_with("22360679")) > 30)
        other = InboundMessage(
            message_id="m_other",
            native_id="other",
            thread=ThreadKey(channel="console", account="local", chat="c2"),
            author=Author(id="owner"),
            received_at=1_700_000_000.0,
            text="hello",
        )
        await harness.channel.bring(other)
        assert "Quick." in (await harness.channel.reply(other.message_id)).text
        assert len(processes_with("22360679")) > 30, "it was answered while the bomb went off"
        await harness.channel.say("/stop")
        await harness.channel.reply(bombed.message_id)
    assert processes_with("22360679") == []


def _card(platform: FakePlatform, chat: Place, tool: str) -> list[str]:
    return [one.native_id for one in platform.visible(chat) if f"{tool} asks" in one.text and one.buttons]


async def test_on_telegram_a_command_is_allowed_its_file_comes_back_and_stop_ends_it(tmp_path: Path) -> None:
    llm = _llm(
        *(LOAD, _calling("run_script", script="echo a,b > table.csv; echo written")),
        *(_calling("send_command_file", "s", name="table.csv", caption="The table"), "Here you are."),
        *(LOAD, _calling("run_script", script=_LONG.format(mark="26457513"))),
    )
    async with FakeTelegram() as telegram:
        ann = telegram.person("ann")
        chat = telegram.private_chat(ann)
        async with open_gateway(tmp_path / "data", *telegram.overrides(tmp_path), *ON, llm=llm) as harness:
            await _until(lambda: all(status.up for status in harness.gateway.channel_statuses()))
            await telegram.say(chat, ann, "make a table")
            await telegram.until(lambda: bool(_card(telegram, chat, "run_script")))
            (card,) = [one for one in telegram.visible(chat) if one.buttons and "run_script" in one.text]
            assert "echo a,b > table.csv; echo written" in card.text
            await telegram.press(chat, ann, card.native_id, "Allow")
            await telegram.until(lambda: any(one.file == b"a,b\n" for one in telegram.visible(chat)))
            (file,) = [one for one in telegram.visible(chat) if one.file]
            assert (file.text, file.file_name) == ("The table", "table.csv")
            await telegram.say(chat, ann, "take long")
            await telegram.until(lambda: len(_card(telegram, chat, "run_script")) == 1)
            await telegram.press(chat, ann, _card(telegram, chat, "run_script")[0], "Allow")
            await _until(lambda: len(processes_with("26457513")) >= 2)
            await telegram.say(chat, ann, "/stop")
            await telegram.until(lambda: any("Stopped" in text for text in telegram.bot_texts(chat)))
            await _until(lambda: not processes_with("26457513"))
    assert any("written" in result for result in _results(llm))


async def test_on_the_page_a_command_is_allowed_and_shown_and_its_file_is_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.tools.shell.PROGRESS_S", 0.0)
    port = free_port()
    llm = _llm(
        *(LOAD, _calling("run_script", script="echo line 1; echo x > x.txt")),
        *(_calling("send_command_file", "s", name="x.txt"), "Here you are."),
    )
    web = ("channels.web.enabled=true", f"server.port={port}")
    async with open_gateway(tmp_path, *ON, *web, llm=llm), WebChat() as page:
        token = (tmp_path / "web-token").read_text(encoding="ascii").strip()
        await page.connect(f"http://127.0.0.1:{port}", token)
        await page.send_text("c1", "make it")
        message = await page.accepted("c1")
        asked = await page.wait_for(
            lambda frame: frame["type"] == "event" and frame["event"]["type"] == "approval_required"
        )
        assert "echo line 1; echo x > x.txt" in asked["event"]["reasoning"]
        await page.send_approval("a1", asked["event"]["interaction_id"], "Allow")
        shown = await page.wait_for(
            lambda frame: frame["type"] == "event" and frame["event"]["type"] == "action_progress"
        )
        assert shown["event"]["line"] == "line 1"
        assert shown["event"]["tool_name"] == "run_script"
        entry = await page.wait_for(
            lambda frame: (
                frame["type"] == "entry" and frame["role"] == "assistant" and frame["message_id"] == message
            )
        )
        assert "Here you are." in entry["text"]
        assert [file["name"] for file in entry["files"]] == ["x.txt"]
