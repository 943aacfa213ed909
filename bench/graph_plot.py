"""The graph bench as a picture: two bars for each case on a logarithmic scale, as SVG written by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bench.svg import WIDTH, document, text

_LABELS = 250
_RIGHT = 130
_ROW = 46
_BAR = 15
_TOP = 78
_BOTTOM = 34

_LIGHT = ".peer { fill: #9a6700; }"
_DARK = ".peer { fill: #d29922; }"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """One case: microseconds of processor time on both sides."""

    label: str
    ours_us: float
    peer_us: float
    ratio: float


def plot(bars: Sequence[Bars], *, title: str, peer: str) -> str:
    """The whole SVG document. Raises ValueError when there is nothing to show or a time is not positive."""
    times = [time for one in bars for time in (one.ours_us, one.peer_us)]
    if not times or min(times) <= 0:
        raise ValueError("a plot needs cases with times above zero")
    scale = _Scale(low=math.floor(math.log10(min(times))), high=math.ceil(math.log10(max(times))))
    height = _TOP + _ROW * len(bars) + _BOTTOM
    rows = [line for number, one in enumerate(bars) for line in _case(one, _TOP + _ROW * number, scale)]
    body = [*_legend(peer), *_grid(scale, height - _BOTTOM), *rows]
    return document(title, height, body, light=_LIGHT, dark=_DARK)


class _Scale:
    """Whole powers of ten on the way from the labels to the right edge."""

    def __init__(self, *, low: int, high: int) -> None:
        self.low = low
        self.high = max(high, low + 1)

    def x(self, us: float) -> float:
        share = (math.log10(us) - self.low) / (self.high - self.low)
        return _LABELS + share * (WIDTH - _LABELS - _RIGHT)


def _legend(peer: str) -> list[str]:
    return [
        f'<rect class="ours" x="16" y="42" width="{_BAR}" height="{_BAR}" rx="2"/>',
        text(38, 54, "Parlour", "text"),
        f'<rect class="peer" x="110" y="42" width="{_BAR}" height="{_BAR}" rx="2"/>',
        text(132, 54, peer, "text"),
        text(WIDTH - 16, 54, "processor time, logarithmic; shorter is better", "faint", anchor="end"),
    ]


def _grid(scale: _Scale, bottom: int) -> list[str]:
    lines: list[str] = []
    for power in range(scale.low, scale.high + 1):
        x = scale.x(10.0**power)
        lines.append(f'<line class="line" x1="{x:.1f}" y1="{_TOP - 8}" x2="{x:.1f}" y2="{bottom}"/>')
        lines.append(text(x, bottom + 18, in_words(10.0**power), "faint", anchor="middle"))
    return lines


def _case(one: Bars, y: int, scale: _Scale) -> list[str]:
    start = scale.x(10.0**scale.low)
    lines = [text(_LABELS - 12, y + _BAR + 6, one.label, "text", anchor="end")]
    for offset, us, name in ((0, one.ours_us, "ours"), (_BAR + 2, one.peer_us, "peer")):
        # A time on the scale's lower end still gets a bar that can be seen.
        width = max(scale.x(us) - start, 2.0)
        box = f'x="{start:.1f}" y="{y + offset}" width="{width:.1f}" height="{_BAR}"'
        lines.append(f'<rect class="{name}" {box} rx="2"/>')
        words = in_words(us) if name == "ours" else f"{in_words(us)}, {one.ratio:.0f} times"
        lines.append(text(start + width + 6, y + offset + 12, words, "text"))
    return lines


def in_words(us: float) -> str:
    """Microseconds as people write them: `8 µs`, `1.3 ms`, `20 s`."""
    for size, unit in ((1e6, "s"), (1e3, "ms"), (1.0, "µs")):
        if us >= size:
            value = us / size
            return f"{value:.0f} {unit}" if value >= 10 or value == int(value) else f"{value:.1f} {unit}"
    return f"{us:.1f} µs"
