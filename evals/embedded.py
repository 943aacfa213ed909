"""The embedded model in a whole gateway: which tool ran, with which arguments, and is the answer true.

Each prompt begins a conversation of a person who has one file and one note, and one reminder only if the
prompt asks for a list of them. Every approval is given.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from bench.report import ROOT, BenchUnavailable, scratch_folder, table
from evals.facts import Facts, facts_of
from evals.judging import FILE, FILE_TEXT, NOTE_TEXT, NOTE_TITLE, NOW, REMINDER, ZONE, Outcome, Stored
from evals.prompts import Prompt, prompts
from gateway.app.embedded_model import MODELS
from gateway.scheduling.reminders import REMINDER as REMINDER_KIND
from gateway.storage.ports import Store
from pipeline.domain.clock import ManualClock, SystemClock
from pipeline.domain.events import ActionStarted, ApprovalRequired
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author
from pipeline.llm.local_model import LocalModel
from pipeline.llm.local_process import ChildSettings
from pipeline.tools.confine import person_folder, slug
from tests.support.harness import GatewayHarness, open_gateway

_PATIENCE_S = 300.0
_BATCH = 24
_OWNER = "console:local:user:owner"
_SETTINGS = (
    "llm.max_tokens=120",
    "llm.temperature=0",
    "llm.timeout_s=250",
    'log.level="error"',
    "turn.timeout_s=300",
    'bot.time_zone="Europe/Berlin"',
)


async def run(which: str = "all", model: str = "0.5b") -> str:
    """A table, and the figures as one line of JSON, for the embedded model that llm.local.model calls `model`.
    Raises BenchUnavailable without the model's file."""
    chosen = MODELS[model]
    file = chosen.path(ROOT / "models")
    if not file.is_file():
        raise BenchUnavailable(f"{file} is missing: run `parlour models get {chosen.id}`")
    clock = SystemClock()
    started = clock.monotonic()
    outcomes = await outcomes_of(prompts(which), file)
    return report(outcomes, model, clock.monotonic() - started, await facts_of(file))


async def outcomes_of(asked: Sequence[Prompt], file: Path) -> list[Outcome]:
    """The outcome of each prompt, one after the other."""
    outcomes: list[Outcome] = []
    # The clock does not advance, and 30 tool calls a minute are the limit: each batch gets a new gateway.
    for at in range(0, len(asked), _BATCH):
        model = LocalModel(ChildSettings(model_path=file), clock=SystemClock())
        with scratch_folder() as folder:
            async with open_gateway(
                folder, *_SETTINGS, clock=ManualClock(NOW.timestamp()), model=model
            ) as harness:
                workspace = folder / "workspace"
                outcomes += [await _outcome(harness, workspace, prompt) for prompt in asked[at : at + _BATCH]]
    return outcomes


async def _outcome(harness: GatewayHarness, workspace: Path, prompt: Prompt) -> Outcome:
    channel = harness.channel
    own = person_folder(workspace, _OWNER)
    await _cleared(harness.store, own)
    _write(own / "files" / FILE, FILE_TEXT)
    _write(own / "notes" / f"{slug(NOTE_TITLE)}.txt", f"{NOTE_TITLE}\n{NOTE_TEXT}")
    for number, words in enumerate(_before(prompt)):
        accepted = await channel.say(words, native_id=f"{prompt.id}-{number}", chat=prompt.id)
        await _settled(harness, accepted.message_id)
    accepted = await channel.say(prompt.words, native_id=prompt.id, chat=prompt.id)
    asked: set[str] = set()
    if accepted.status != "accepted":
        raise BenchUnavailable(f"the gateway did not take the message: {accepted.reason}")
    while not any(reply.message_id == accepted.message_id for reply in channel.sent):
        for event in channel.events_of(accepted.message_id):
            if isinstance(event, ApprovalRequired) and event.interaction_id not in asked:
                asked.add(event.interaction_id)
                await channel.bring(_allowing(event, prompt))
        await asyncio.sleep(0.02)
    begun = [event for event in channel.events_of(accepted.message_id) if isinstance(event, ActionStarted)]
    return Outcome(
        prompt=prompt,
        answer=(await channel.reply(accepted.message_id)).text,
        ran=[event.tool_name for event in begun],
        summary=begun[-1].summary if begun else "",
        stored=await _stored(harness.store, own),
    )


async def _cleared(store: Store, own: Path) -> None:
    await asyncio.to_thread(shutil.rmtree, own, ignore_errors=True)
    for one in await store.jobs.of(REMINDER_KIND, _OWNER):
        await store.jobs.remove(REMINDER_KIND, _OWNER, one.key)


def _before(prompt: Prompt) -> list[str]:
    if prompt.off_the_record:
        return ["/otr"]
    return [f"Remind me on 2027-01-04 at 12:00 to {REMINDER}"] if prompt.tool == "list_reminders" else []


async def _settled(harness: GatewayHarness, message_id: str) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        await harness.channel.reply(message_id)


def _allowing(event: ApprovalRequired, prompt: Prompt) -> ApprovalReply:
    return ApprovalReply(
        message_id=f"yes-{event.interaction_id}",
        native_id=f"yes-{event.interaction_id}",
        thread=ThreadKey(channel="console", account="local", chat=prompt.id),
        author=Author(id="owner"),
        received_at=NOW.timestamp(),
        interaction_id=event.interaction_id,
        choice=event.options[0],
    )


async def _stored(store: Store, own: Path) -> Stored:
    notes = (path.read_text("utf-8").partition("\n") for path in sorted((own / "notes").glob("*.txt")))
    reminders = await store.jobs.of(REMINDER_KIND, _OWNER)
    return Stored(
        files={path.name: path.read_text("utf-8") for path in (own / "files").iterdir()},
        notes={title: text for title, _, text in notes},
        reminders=[(datetime.fromtimestamp(one.due, ZONE), one.body["text"]) for one in reminders],
    )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def report(outcomes: Sequence[Outcome], model: str, seconds: float, facts: Facts) -> str:
    """The tables of the shares, of the prompts that went wrong and of `facts`, and last the line of JSON.
    `seconds` is how long `model` took for all prompts."""
    rows = [_row(name, chosen) for name, chosen in _by_language(outcomes)]
    wrong = [one for one in outcomes if not (one.right_tool and one.right_argument and one.true_words)]
    lines = [*table(("", "prompts", "right tool", "right argument", "true words"), rows), ""]
    for one in wrong:
        marks = [name for name in ("right_tool", "right_argument", "true_words") if not getattr(one, name)]
        lines.append(
            f"* {one.prompt.id} {one.prompt.words!r}: not {', '.join(marks)}; ran {one.ran} {one.summary!r}"
        )
        lines.append(f"    {' '.join(one.answer.split())[:200]!r}")
    figures = {"eval": "embedded", "model": model, "prompts": len(outcomes), "seconds": round(seconds)}
    measured = {key: value for key, value in asdict(facts).items() if key != "wrong"}
    return "\n".join([*lines, "", facts.text(), "", json.dumps({**figures, **_shares(outcomes), **measured})])


def _by_language(outcomes: Sequence[Outcome]) -> list[tuple[str, Sequence[Outcome]]]:
    languages = sorted({one.prompt.language for one in outcomes})
    return [
        *((name, [one for one in outcomes if one.prompt.language == name]) for name in languages),
        ("all", outcomes),
    ]


def _row(name: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    shares = _shares(outcomes)
    return (name, str(len(outcomes)), *(f"{share:.2f}" for share in shares.values()))


def _shares(outcomes: Sequence[Outcome]) -> dict[str, float]:
    count = len(outcomes)
    return {
        name: round(sum(bool(getattr(one, name)) for one in outcomes) / count, 3)
        for name in ("right_tool", "right_argument", "true_words")
    }
