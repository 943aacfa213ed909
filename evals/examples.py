"""The shipped examples and tools with the embedded model, through whole gateways: has each path an answer, and did
what was asked for happen.

The suite has the same messages with scripted answers (tests/end_to_end/test_document_agents.py, test_workflow_runs.py),
and has one conversation with the real model. Which words the model chooses differs from processor to processor; that
each message is answered does not.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, NamedTuple

from bench.report import ROOT, BenchUnavailable, scratch_folder, table
from gateway.app.embedded_model import MODELS
from pipeline.domain.clock import SystemClock
from tests.support.gateway_process import GatewayProcess, free_port, up
from tests.support.platforms.telegram import FakeTelegram
from tests.support.web_client import Frame, WebChat

EXAMPLES = ROOT / "examples"
_PATIENCE_S = 600.0
_SETTINGS = (
    "llm.max_tokens=60",
    "llm.temperature=0",
    "llm.timeout_s=600",
    "turn.timeout_s=900",
    'voice.transcriber="scripted:hello"',
    "agent.titles=false",
)
_ROUTES = (
    'routes.1.channel="telegram"',
    'routes.1.agent="care"',
    'routes.2.channel="web"',
    'routes.2.also=["study"]',
)
_DOCUMENTS = {"agent": "support", "agents.study": "research", "agents.care": "companion"}
_PAGE_TOOLS = (
    ("What time is it in Tokyo?", ("current_time",), ""),
    ("Remember that my bike code is 4711.", ("write_note",), "4711"),
    ("Remind me in 10 minutes to stretch.", ("remind_me",), "stretch"),
    ("What is the capital of France?", (), ""),
)
"""What is asked, which tools run, and what the notes and reminders say afterwards."""


class Outcome(NamedTuple):
    """One message."""

    part: str
    asked: str
    problem: str
    """Empty where it was answered and did what it should."""


async def run(model: str = "0.5b") -> str:
    """A table, every miss and one line of JSON; five minutes with the smaller model. Raises BenchUnavailable without
    the model's file."""
    chosen = MODELS[model]
    if not chosen.path(ROOT / "models").is_file():
        raise BenchUnavailable(f"the model is missing: run `parlour models get {chosen.id}`")
    given = (f"models.dir={json.dumps(str(ROOT / 'models'))}", f"llm.local.model={model}", *_SETTINGS)
    found = [*await _documents(given), *await _workflow(given), *await _tools(given)]
    return report(found, model)


def report(found: list[Outcome], model: str) -> str:
    """What is printed about these messages."""
    parts = list(dict.fromkeys(one.part for one in found))
    rows = [(part, *_counts([one for one in found if one.part == part])) for part in parts]
    missed = [f"  {one.part}, {one.asked!r}: {one.problem}" for one in found if one.problem]
    shares = {part: good / count for part, count, good in rows}
    figures = {"eval": "examples", "model": model, "messages": len(found), "missed": len(missed), **shares}
    shown = [(part, str(count), str(good)) for part, count, good in rows]
    lines = table(("", "messages", "as they should be"), shown)
    return "\n\n".join(
        ("\n".join(lines), "\n".join((f"Missed: {len(missed)}", *missed)), json.dumps(figures))
    )


def _counts(found: list[Outcome]) -> tuple[int, int]:
    return len(found), sum(not one.problem for one in found)


async def _documents(given: tuple[str, ...]) -> list[Outcome]:
    """The three documents of examples/graphs, on the page and in Telegram."""
    with scratch_folder() as folder:
        agents = [_patient(folder, agent, name) for agent, name in _DOCUMENTS.items()]
        async with _served(folder, *given, *_ROUTES, *agents) as (chat, telegram, _):
            found = [await _answered(chat, "documents", "How long is the warranty of the kettle?")]
            await chat.send_text("choose", "/agent study")
            await chat.wait_for(lambda frame: frame["type"] == "entry" and frame["role"] == "session")
            found.append(await _answered(chat, "documents", "Why is the sky blue?"))
            found.append(await _answered_in_telegram(telegram, "documents", "My cat is ill and I am sad."))
    return found


def _patient(folder: Path, agent: str, name: str) -> str:
    """The setting that gives `agent` the example `name`, without the example's limit on the time of a run."""
    document = json.loads((EXAMPLES / "graphs" / f"{name}.json").read_text(encoding="utf-8"))
    # A machine that also does other work needs minutes for a run.
    document["limits"] = document.get("limits", {}) | {"max_seconds": 800}
    (folder / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    return f'{agent}.graph="{folder / f"{name}.json"}"'


async def _workflow(given: tuple[str, ...]) -> list[Outcome]:
    """The workflow of examples/workflows: a refund waits for a person, and a question does not."""
    triage = EXAMPLES / "workflows" / "triage.workflow.json"
    routes = (f'agents.triage.graph="{triage}"', 'routes.1.channel="web"', 'routes.1.agent="default"')
    with scratch_folder() as folder:
        async with _served(folder, *given, *routes, 'routes.1.also=["triage"]') as (chat, _, _):
            refund = "/run triage I want my money back"
            return [
                await _approved(chat, refund),
                await _answered(chat, "workflow", "/run triage When are you open?"),
            ]


async def _approved(chat: WebChat, text: str) -> Outcome:
    await chat.send_text(text, text)
    message_id = await chat.accepted(text)
    asked = (await chat.wait_for(lambda frame: _asks_or_ends(frame, message_id)))["event"]
    if asked["type"] != "approval_required":
        return Outcome("workflow", text, "no approval was asked for")
    await chat.send_approval("yes", asked["interaction_id"], "approve")
    approved = await chat.terminal(await chat.accepted("yes"))
    sent = approved.type == "response_complete" and approved.text in asked["reasoning"]
    return Outcome("workflow", text, "" if sent else "what was approved is not what went out")


def _asks_or_ends(frame: Frame, message_id: str) -> bool:
    event = frame["event"] if frame["type"] == "event" else {}
    kinds = ("approval_required", "response_complete", "error")
    return event.get("type") in kinds and event["message_id"] == message_id


async def _tools(given: tuple[str, ...]) -> list[Outcome]:
    """Tools as people ask for them, on the page and in Telegram."""
    found = []
    with scratch_folder() as folder:
        async with _served(folder, *given) as (chat, telegram, gateway):
            for text, tools, kept in _PAGE_TOOLS:
                ran = await _tools_of(chat, text)
                problem = "" if ran == list(tools) else f"ran {ran} instead of {list(tools)}"
                if not problem and kept not in _kept(gateway).lower():
                    problem = f"{kept!r} is in no note and no reminder"
                found.append(Outcome("tools", text, problem))
            note = "Remember that my locker code is 4812."
            outcome = await _answered_in_telegram(telegram, "tools", note)
            missing = "" if "4812" in _kept(gateway) else "'4812' is in no note"
            found.append(outcome if outcome.problem else Outcome("tools", note, missing))
    return found


async def _tools_of(chat: WebChat, text: str) -> list[str]:
    """The tools that succeeded in the message's turn, until it ends; `error` behind them where it fails."""
    await chat.send_text(text, text)
    done: list[str] = []
    clock = SystemClock()
    deadline = clock.monotonic() + _PATIENCE_S
    while clock.monotonic() < deadline:
        try:
            event = (await chat.receive()).get("event", {})
        except TimeoutError:  # no frame for long: a busy machine reads prompts slowly
            continue
        if event.get("type") == "action_completed" and event["success"]:
            done.append(event["tool_name"])
        elif event.get("type") == "error":
            return [*done, "error"]
        elif event.get("type") == "response_complete":
            break
    return done


@asynccontextmanager
async def _served(
    folder: Path, *settings: str
) -> AsyncIterator[tuple[WebChat, FakeTelegram, GatewayProcess]]:
    """A gateway on the page and on a fake Telegram."""
    async with FakeTelegram(lenient=True) as telegram:
        overrides = (*settings, *telegram.overrides(folder))
        async with (
            GatewayProcess(folder, overrides=overrides, port=free_port(), executed=True) as gateway,
            WebChat() as chat,
        ):
            await gateway.start()
            await up(gateway, "telegram")
            await chat.connect(gateway.url, gateway.token)
            yield chat, telegram, gateway


async def _answered(chat: WebChat, part: str, text: str) -> Outcome:
    await chat.send_text(text, text)
    terminal = await chat.terminal(await chat.accepted(text))
    good = terminal.type == "response_complete" and terminal.text
    return Outcome(part, text, "" if good else f"{terminal.type}: {terminal.text}")


async def _answered_in_telegram(telegram: FakeTelegram, part: str, text: str) -> Outcome:
    ann = telegram.person("ann")
    place = telegram.private_chat(ann)
    await telegram.say(place, ann, text)
    try:
        await telegram.until(lambda: bool(telegram.bot_texts(place)), timeout_s=_PATIENCE_S)
    except TimeoutError:
        return Outcome(part, text, "no answer")
    return Outcome(part, text, "")


def _kept(gateway: GatewayProcess) -> str:
    """The texts of all notes on the disk and of all reminders."""
    notes = [path.read_text(encoding="utf-8") for path in gateway.data_dir.glob("workspace/people/*/notes/*")]
    with closing(sqlite3.connect(f"file:{gateway.store_path}?mode=ro", uri=True)) as db:
        rows: list[tuple[Any, ...]] = db.execute("SELECT json_extract(body, '$.text') FROM jobs").fetchall()
    return "\n".join([*notes, *(str(text) for (text,) in rows)])
