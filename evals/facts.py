"""The embedded model alone: how many plain questions it answers right, how fast it reads and writes, and its memory.

Each answer is right if it has one of the expected words. Not here: tools and rules (`embedded`).
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from bench.report import table
from gateway.config import load
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.frozen import dataclass
from pipeline.llm.client import LlmFinished, LlmRequest, TextDelta
from pipeline.llm.local_model import LocalModel
from pipeline.llm.local_process import ChildSettings

_QUESTIONS = Path(__file__).with_name("embedded_facts.json")
_TIMEOUT_S = 250.0
_WORDS_OF_PROMPT = 600
_SPEED_TOKENS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The figures of one model file."""

    right: int
    questions: int
    wrong: tuple[str, ...]
    """Each question that was answered wrong, with the answer."""
    start_s: float
    reads_per_s: float
    """Tokens of a prompt in a second."""
    writes_per_s: float
    memory_mb: int
    """The most that the child process had in memory, with the mapped file."""

    def text(self) -> str:
        """The table for people."""
        head = ("questions", "right", "start, s", "reads, tokens/s", "writes, tokens/s", "memory, MB")
        figures = (self.questions, self.right, f"{self.start_s:.1f}", round(self.reads_per_s))
        row = (*figures, f"{self.writes_per_s:.1f}", self.memory_mb)
        return "\n".join([*table(head, [tuple(map(str, row))]), "", *(f"* {one}" for one in self.wrong)])


async def facts_of(file: Path) -> Facts:
    """Ask every question, one after the other, with the default instruction."""
    clock = SystemClock()
    model = LocalModel(ChildSettings(model_path=file), clock=clock)
    system = load(Path("/dev/null"), {}, []).bot.system_prompt
    questions = json.loads(_QUESTIONS.read_text("utf-8"))
    started = clock.monotonic()
    try:
        await model.warm_up()
        start_s = clock.monotonic() - started
        wrong = []
        for one in questions:
            answer, *_ = await _asked(model, clock, one["words"], system=system, max_tokens=60)
            if not any(re.search(rf"\b{word}\b", answer.casefold()) for word in one["right"]):
                wrong.append(f"{one['words']!r}: {' '.join(answer.split())[:120]!r}")
        words = " ".join(f"word{number}" for number in range(_WORDS_OF_PROMPT))
        _, reading_s, _, prompt, _ = await _asked(model, clock, f"{words} Repeat this.", max_tokens=1)
        story = "Tell a story about a lighthouse keeper."
        _, _, writing_s, _, written = await _asked(model, clock, story, max_tokens=_SPEED_TOKENS)
        memory = _memory_mb(model.child_pid)
    finally:
        await model.close()
    return Facts(
        right=len(questions) - len(wrong),
        questions=len(questions),
        wrong=tuple(wrong),
        start_s=start_s,
        reads_per_s=prompt / reading_s,
        writes_per_s=(written - 1) / writing_s,
        memory_mb=memory,
    )


async def _asked(
    model: LocalModel, clock: Clock, words: str, *, system: str = "", max_tokens: int
) -> tuple[str, float, float, int, int]:
    """The answer, the seconds to its first word and from there to its end, and the tokens of both sides."""
    messages = [ChatMessage(role="system", content=system)] if system else []
    request = LlmRequest(
        messages=(*messages, ChatMessage(role="user", content=words)),
        max_tokens=max_tokens,
        temperature=0.0,
        timeout_s=_TIMEOUT_S,
    )
    started, first, text, usage = clock.monotonic(), 0.0, "", LlmFinished(finish_reason="stop")
    async for item in model.stream(request):
        if isinstance(item, TextDelta):
            first = first or clock.monotonic()
            text += item.text
        elif isinstance(item, LlmFinished):
            usage = item
    first = first or clock.monotonic()
    return text, first - started, clock.monotonic() - first, usage.prompt_tokens, usage.completion_tokens


def _memory_mb(pid: int | None) -> int:
    """The peak of the process's resident memory; 0 where the system does not say."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
        return next(int(line.split()[1]) * 1024 // 1_000_000 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return 0
