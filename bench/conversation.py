"""The cost of a conversation: a turn that loads tools, streaming through each backend, and a long history.

With another commit to compare with, both gateways run side by side and take turns.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.checkout import checked_out
from bench.conversation_backends import STREAMS, measure_backends
from bench.report import Report, median, scratch_folder
from pipeline.domain.clock import SystemClock
from tests.support.gateway_process import SCRIPTED, GatewayProcess
from tests.support.web_client import WebChat

_ROUNDS, _TURNS_A_ROUND = 10, 20
_TURNS = _ROUNDS * _TURNS_A_ROUND
_WARM = 20
_SHORT, _LONG = 10, 1_000
_COMPARED = 60
_TEXT = "Which of my files is the newest?"
_ANSWER = "I looked at your files, and the newest of them is the list that you wrote yesterday evening."
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turns:
    cpu_ms: float
    """Processor time of the gateway for a turn, the mean."""
    wall_ms: float
    """From the message to its terminal event, the median."""
    short_ms: float
    long_ms: float
    """The same after 10 and after 1,000 messages, in alternation."""
    against_cpu_ms: float
    """As `cpu_ms`, of the other commit's gateway; 0 without one."""


async def run(against: str | None = None) -> Report:
    """Measure turns of a gateway in a separate process, then the backends in this one. `against` names a
    commit whose gateway is measured in turns with this one. Raises BenchUnavailable for an unknown commit."""
    with scratch_folder() as folder, ExitStack() as stack:
        other = stack.enter_context(checked_out(against, folder / "checkout")) if against else None
        turns = await _turns(folder, other)
    return _report(turns, await measure_backends(), against=against)


async def _turns(folder: Path, other: Path | None) -> _Turns:
    overrides = _overrides(folder)
    async with AsyncExitStack() as stack:
        gateways = [GatewayProcess(folder / "gateway", overrides=overrides, executed=True)]
        if other is not None:
            gateways.append(
                GatewayProcess(folder / "other", overrides=overrides, executed=True, sources=other)
            )
        for one in gateways:
            await stack.enter_async_context(one)
            await one.start()
        gateway = gateways[0]
        chats = [await _chat(stack, one) for one in gateways]
        for chat in chats:
            for number in range(_WARM):
                await _turn(chat, number)
        cpu, times = await _in_turns(list(zip(gateways, chats, strict=True)))
        short, long = [await _chat(stack, gateway) for _ in range(2)]
        for number in range(_LONG // 2):
            await _turn(long, number)
        short_times: list[float] = []
        long_times: list[float] = []
        for number in range(_COMPARED):
            if number % (_SHORT // 2) == 0:  # keeps the chat short: from 10 messages to 20
                short = await _chat(stack, gateway)
                for earlier in range(_SHORT // 2):
                    await _turn(short, earlier)
            short_times.append(await _turn(short, _SHORT + number))
            long_times.append(await _turn(long, _LONG + number))
        for one in gateways:
            await one.stop()
    return _Turns(
        cpu_ms=cpu[0] / _TURNS * 1e3,
        against_cpu_ms=sum(cpu[1:]) / _TURNS * 1e3,
        wall_ms=median(times),
        short_ms=median(short_times),
        long_ms=median(long_times),
    )


async def _in_turns(pairs: Sequence[tuple[GatewayProcess, WebChat]]) -> tuple[list[float], list[float]]:
    """The processor seconds of each gateway for its turns, and the milliseconds of the first one's turns."""
    cpu, times = [0.0 for _ in pairs], list[float]()
    for round_ in range(_ROUNDS):
        for place, (gateway, chat) in enumerate(pairs):
            before, first = _cpu_s(gateway.pid), _WARM + round_ * _TURNS_A_ROUND
            took = [await _turn(chat, first + number) for number in range(_TURNS_A_ROUND)]
            cpu[place] += _cpu_s(gateway.pid) - before
            times += [] if place else took
    return cpu, times


def _overrides(folder: Path) -> tuple[str, ...]:
    """A model that loads the five tools of `files` in every turn and then answers, and a gateway that makes
    no other calls: no titles, no summaries, whatever the history's length."""
    turns = _WARM + _TURNS + _LONG // 2 + 2 * _COMPARED + (_COMPARED // (_SHORT // 2)) * (_SHORT // 2)
    load = {"calls": [{"name": "load_tools", "arguments": {"groups": ["files"]}}]}
    script = folder / "script.json"
    script.write_text(json.dumps([load, _ANSWER] * turns), encoding="utf-8")
    return (
        f"llm.model={json.dumps(f'scripted:file={script}')}",
        SCRIPTED[1],
        "agent.titles=false",
        "agent.summarise_above=10000",
        "limits.messages_per_minute=0",
    )


async def _chat(stack: AsyncExitStack, gateway: GatewayProcess) -> WebChat:
    chat = await stack.enter_async_context(WebChat())
    await chat.connect(gateway.url, gateway.token)
    return chat


async def _turn(chat: WebChat, number: int) -> float:
    """One turn's milliseconds. Raises RuntimeError if the turn does not end with the scripted answer."""
    client_id = f"t{number}"
    began = _CLOCK.monotonic()
    await chat.send_text(client_id, _TEXT)
    end = await chat.terminal(await chat.accepted(client_id))
    took = (_CLOCK.monotonic() - began) * 1e3
    if end.text != _ANSWER:
        raise RuntimeError(f"a turn ended with {end.type}: {end.text}")
    return took


def _cpu_s(pid: int) -> float:
    """Processor seconds of a process, user and system, all threads. Linux."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def _report(turns: _Turns, backends: Mapping[str, float], *, against: str | None) -> Report:
    ratio = turns.long_ms / turns.short_ms
    compared, figures = list[tuple[str, str]](), dict[str, float]()
    if against is not None:
        cpu_ratio = turns.cpu_ms / turns.against_cpu_ms
        compared = [
            (f"{against}: processor time of such a turn", f"{turns.against_cpu_ms:.1f} ms"),
            ("ratio of the processor times", f"{cpu_ratio:.2f}"),
        ]
        figures = {
            "against_cpu_ms_per_turn": round(turns.against_cpu_ms, 2),
            "cpu_ratio": round(cpu_ratio, 3),
        }
    return Report(
        bench="conversation",
        title="conversation: turns with tools and a scripted model, and streaming through the model backends",
        head=("", "figure"),
        rows=[
            ("a turn that loads five tools and answers: processor time", f"{turns.cpu_ms:.1f} ms"),
            ("the same: message to terminal event, p50", f"{turns.wall_ms:.1f} ms"),
            (f"the same after {_SHORT} messages, p50", f"{turns.short_ms:.1f} ms"),
            (f"the same after {_LONG} messages, p50", f"{turns.long_ms:.1f} ms"),
            (f"ratio of {_LONG} to {_SHORT} messages", f"{ratio:.2f}"),
            ("1,000 streamed tokens, direct backend: processor time", f"{backends['direct']:.0f} ms"),
            (
                "1,000 streamed tokens, litellm backend: processor time",
                f"{backends['litellm_backend']:.0f} ms",
            ),
            ("1,000 streamed tokens, litellm alone: processor time", f"{backends['litellm']:.0f} ms"),
            (
                "ratio of litellm alone to the direct backend",
                f"{backends['litellm'] / backends['direct']:.1f}",
            ),
            *compared,
        ],
        notes=(
            f"{_TURNS} turns, each with two calls of the model and one of load_tools; SQLite as it is served",
            f"{_COMPARED} turns of either history, in alternation; nothing is summarised",
            f"the backends: {STREAMS} streams at a time, 50 tokens a second each; medians, in alternation",
        ),
        figures={
            "cpu_ms_per_turn": round(turns.cpu_ms, 2),
            "direct_cpu_ms_per_1000_tokens": round(backends["direct"], 1),
            "litellm_cpu_ms_per_1000_tokens": round(backends["litellm"], 1),
            "history_1000_over_10": round(ratio, 2),
            **figures,
        },
    )
