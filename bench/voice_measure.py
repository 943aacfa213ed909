"""The voice bench's measurements: ours beside the bare recogniser, processor time, timer delay and memory."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.report import median, percentile
from bench.voice_raw import Raw
from pipeline.domain.clock import SystemClock
from voice.transcriber import Recording, Transcriber

_CLOCK = SystemClock()
_TICK_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Wall and processor seconds, and the transcripts."""

    wall_s: float
    cpu_s: float
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The same recordings on both sides; one entry of `ours` and `raw` a round."""

    ours: Sequence[Spent]
    raw: Sequence[Spent]

    @property
    def wall_ratio(self) -> float:
        """Median of the rounds' ratios."""
        return median([here.wall_s / there.wall_s for here, there in zip(self.ours, self.raw, strict=True)])

    @property
    def cpu_ratio(self) -> float:
        """Median of the rounds' ratios."""
        return median([here.cpu_s / there.cpu_s for here, there in zip(self.ours, self.raw, strict=True)])

    @property
    def ours_s(self) -> float:
        """Median wall seconds of a round."""
        return median([spent.wall_s for spent in self.ours])

    @property
    def raw_s(self) -> float:
        """Median wall seconds of a round."""
        return median([spent.wall_s for spent in self.raw])


@dataclass(slots=True)
class Lateness:
    """How late a timer of ten milliseconds fired."""

    late_s: list[float] = field(default_factory=list)

    @property
    def p99_ms(self) -> float:
        """The delay that one tick in a hundred exceeds."""
        return percentile(self.late_s, 0.99) * 1e3


class Contest:
    """Both sides, measured in alternation."""

    def __init__(self, ours: Transcriber, raw: Raw) -> None:
        self._ours = ours
        self._raw = raw

    async def compare(self, notes: Sequence[bytes], *, rounds: int) -> Beside:
        """Every note on both sides in each round, one after the other; the order alternates."""
        here: list[Spent] = []
        there: list[Spent] = []
        for number in range(rounds):
            ours: list[Spent] = []
            raw: list[Spent] = []
            for place, note in enumerate(notes):
                if (number + place) % 2:
                    ours.append(await self.ours(note))
                raw.append(await self.raw(note))
                if not (number + place) % 2:
                    ours.append(await self.ours(note))
            here.append(_sum(ours))
            there.append(_sum(raw))
        return Beside(ours=here, raw=there)

    async def at_once(self, notes: Sequence[bytes], *, rounds: int) -> tuple[Beside, Lateness]:
        """All notes at once with ours, and one after the other with the bare recogniser; and the delay of
        this process's event loop during ours."""
        here: list[Spent] = []
        there: list[Spent] = []
        late = Lateness()
        for _ in range(rounds):
            there.append(_sum([await self.raw(note) for note in notes]))
            async with ticking(late):
                here.append(await self._all(notes))
        return Beside(ours=here, raw=there), late

    async def ours(self, note: bytes) -> Spent:
        """One note, transcribed by ours."""
        cpu, began = self._cpu_s(), _CLOCK.monotonic()
        text = await self._text(note)
        return Spent(wall_s=_CLOCK.monotonic() - began, cpu_s=self._cpu_s() - cpu, texts=(text,))

    async def raw(self, note: bytes) -> Spent:
        """One note, transcribed by the bare recogniser."""
        result = await self._raw.transcribe(note)
        return Spent(wall_s=result.wall_s, cpu_s=result.cpu_s, texts=(result.text,))

    async def _all(self, notes: Sequence[bytes]) -> Spent:
        cpu, began = self._cpu_s(), _CLOCK.monotonic()
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._text(note, speaker=str(place))) for place, note in enumerate(notes)
            ]
        spent_s = _CLOCK.monotonic() - began
        texts = tuple(task.result() for task in tasks)
        return Spent(wall_s=spent_s, cpu_s=self._cpu_s() - cpu, texts=texts)

    async def _text(self, note: bytes, *, speaker: str = "") -> str:
        transcript = await self._ours.transcribe(Recording(data=note, speaker=speaker))
        return " ".join(chunk.text for chunk in transcript.chunks)

    def _cpu_s(self) -> float:
        """Processor seconds of this process and its children, without the bare recogniser."""
        children = sum(_cpu_of(pid) for pid in family(os.getpid()) if pid != self._raw.pid)
        return time.process_time() + children


@asynccontextmanager
async def ticking(late: Lateness) -> AsyncIterator[None]:
    """Measures the event loop's delay while the block runs."""

    async def tick() -> None:
        while True:
            due = _CLOCK.monotonic() + _TICK_S
            await _CLOCK.sleep(_TICK_S)
            late.late_s.append(max(0.0, _CLOCK.monotonic() - due))

    async with asyncio.TaskGroup() as group:
        ticker = group.create_task(tick())
        try:
            yield
        finally:
            ticker.cancel()


def family(pid: int) -> Iterator[int]:
    """The processes that `pid` started, and theirs, without those that end meanwhile. Linux."""
    children: list[str] = []
    # Processes and threads may end between the listing and the reading.
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                children += (task / "children").read_text().split()
    for child in children:
        yield int(child)
        yield from family(int(child))


def rss_mb(pid: int) -> float:
    """Megabytes of memory that a process has in use; 0 for one that has ended. Linux."""
    lines: list[str] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    # A process that has ended and was not waited for has no such line.
    kilobytes = sum([int(line.split()[1]) for line in lines if line.startswith("VmRSS:")])
    return kilobytes / 1024


def _cpu_of(pid: int) -> float:
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    # user, system, and the same of its children that are gone
    return sum(int(ticks) for ticks in after_name[11:15]) / os.sysconf("SC_CLK_TCK")


def _sum(spent: Sequence[Spent]) -> Spent:
    return Spent(
        wall_s=sum(one.wall_s for one in spent),
        cpu_s=sum(one.cpu_s for one in spent),
        texts=tuple(text for one in spent for text in one.texts),
    )
