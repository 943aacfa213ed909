"""The heartbeat through a whole gateway: what happens, time in; what the model is asked and the chat reads, out."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import ManualClock
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.channel import MemoryChannel
from tests.support.harness import THREAD, GatewayHarness, open_gateway

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2027, 3, 24, 12, 0, tzinfo=BERLIN).timestamp()
OWN = (
    "heartbeat.enabled=true",
    "heartbeat.channel=console",
    "heartbeat.chat=c1",
    'bot.time_zone="Europe/Berlin"',
)
BEAT = f"{THREAD}:~heartbeat"
DONE = "<AGENT_DONE><KEY_RESULT>done</KEY_RESULT></AGENT_DONE>"


def document(folder: Path, text: str) -> None:
    place = folder / "workspace"
    place.mkdir(parents=True, exist_ok=True)
    (place / "HEARTBEAT.md").write_text(text, encoding="utf-8")


def told(channel: MemoryChannel) -> list[str]:
    return [reply.text for reply in channel.sent if reply.role == "notice"]


async def pass_time(clock: ManualClock, seconds: float, step: float = 60.0) -> None:
    while seconds > 0:
        await clock.advance(min(step, seconds))
        seconds -= step


async def test_a_cron_line_wakes_the_model_and_its_words_come_to_the_chat(tmp_path: Path) -> None:
    document(tmp_path, "Be brief.\n\n- `0 13 * * *` -- say what day it is\n")
    clock, channel = ManualClock(NOON), MemoryChannel()
    llm = ScriptedLlm([ScriptedAnswer.of(f"It is Wednesday. {DONE}")])
    async with open_gateway(tmp_path, *OWN, llm=llm, channel=channel, clock=clock):
        await pass_time(clock, 3_500)
        assert llm.requests == []
        await pass_time(clock, 300)
        await channel.until(lambda: told(channel) == ["It is Wednesday."])
        (request,) = llm.requests
        asked = request.messages[-1].content
        assert "say what day it is" in asked
        assert "Be brief." in asked
