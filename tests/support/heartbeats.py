"""Gateways with a heartbeat: its document, the model's answers, and time that passes until all is done."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from gateway.interactions.approvals import ALLOW
from gateway.storage.jobs import NewJob
from gateway.storage.ports import Store
from pipeline.domain.clock import ManualClock
from pipeline.domain.ids import ThreadKey, identity_key
from pipeline.domain.messages import ApprovalReply, Author, button_handle
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.tools.confine import person_folder
from tests.support.channel import MemoryChannel
from tests.support.harness import THREAD, GatewayHarness
from tests.support.heartbeat_child import settle

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2027, 3, 24, 12, 0, tzinfo=BERLIN).timestamp()
"""A Wednesday."""
ZONE = 'bot.time_zone="Europe/Berlin"'
OWN = ("heartbeat.enabled=true", "heartbeat.channel=console", "heartbeat.chat=c1", ZONE)
BEAT = f"{THREAD}:~heartbeat"
OWNER = identity_key("console", "local", "owner")
HOUR = 3_600.0
MINUTE = 60.0
DAY = 86_400.0
_FIRST_S = 120.0
_SHORT_S = 30.0


def done(words: str) -> ScriptedAnswer:
    return ScriptedAnswer.of(f"{words} <AGENT_DONE><KEY_RESULT>done</KEY_RESULT></AGENT_DONE>")


def more(report: str) -> ScriptedAnswer:
    tag = f"<AGENT_CONTINUE><STATUS_REPORT>{report}</STATUS_REPORT></AGENT_CONTINUE>"
    return ScriptedAnswer.of(f"I work on it. {tag}")


def blocked(why: str) -> ScriptedAnswer:
    reason = f"<BLOCKER_REASON>{why}</BLOCKER_REASON>"
    need = "<UNBLOCK_REQUIREMENTS>say yes</UNBLOCK_REQUIREMENTS>"
    return ScriptedAnswer.of(f"I need you. <AGENT_BLOCKED>{reason}{need}</AGENT_BLOCKED>")


def document(folder: Path, text: str) -> None:
    (folder / "workspace").mkdir(parents=True, exist_ok=True)
    (folder / "workspace" / "HEARTBEAT.md").write_text(text, encoding="utf-8")


def own_file(folder: Path, name: str) -> Path:
    files = person_folder(folder / "workspace", OWNER) / "files"
    files.mkdir(parents=True, exist_ok=True)
    return files / name


def news(channel: MemoryChannel) -> list[str]:
    return [reply.text for reply in channel.sent if reply.role == "notice"]


def asked(llm: ScriptedLlm, number: int = -1) -> str:
    """The words with which the model was woken."""
    return next(one.content for one in reversed(llm.requests[number].messages) if one.role == "user")


async def pass_time(harness: GatewayHarness, clock: ManualClock, seconds: float) -> None:
    """Let time pass, in steps of up to five minutes after which all that has begun ends. The first steps are
    shorter than the time limit of a tool: what has changed before is read in them, and a check that begins
    within a step must not come to its limit in the same one, while its thread still reads."""
    await settle(harness)
    began = clock.now()
    while (left := began + seconds - clock.now()) > 0:
        is_first = clock.now() - began < _FIRST_S
        await clock.advance(min(_SHORT_S if is_first else 5 * MINUTE, left))
        await settle(harness)


async def until(harness: GatewayHarness, is_so: Callable[[], bool]) -> None:
    """Return when it is so. Every look waits for the store's thread."""
    while not is_so():
        await harness.store.open_threads()


async def command(channel: MemoryChannel, words: str) -> str:
    before = len(channel.sent)
    await channel.say(words, native_id=f"{before}:{words}")
    await channel.until(lambda: len(channel.sent) > before)
    return channel.sent[-1].text


async def add_damaged(store: Store) -> None:
    job = NewJob(kind="watch", key="bad", thread=THREAD, owner=OWNER, due=2e11, body={"condition": {}})
    await store.jobs.add(job)


async def allow(harness: GatewayHarness) -> None:
    (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
    press = ApprovalReply(
        message_id="m_press",
        native_id="press",
        thread=ThreadKey.decode(THREAD),
        author=Author(id="owner"),
        received_at=NOON,
        interaction_id=button_handle(question.id),
        choice="",
        option=question.options.index(ALLOW),
    )
    await harness.channel.bring(press)
