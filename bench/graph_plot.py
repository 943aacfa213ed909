"""The graph bench as a picture: two bars for each case on a logarithmic scale, as SVG written by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

_WIDTH = 860
_LABELS = 250
_RIGHT = 130
_ROW = 46
_BAR = 15
_TOP = 78
_BOTTOM = 34

# The picture brings its own background, so it can be read on any page; it follows the reader's preference.
_STYLE = """
  .back { fill: #ffffff; } .text { fill: #1f2328; } .faint { fill: #59636e; }
  .line { stroke: #d1d9e0; } .ours { fill: #1a7f64; } .peer { fill: #9a6700; }
  @media (prefers-color-scheme: dark) {
    .back { fill: #0d1117; } .text { fill: #f0f6fc; } .faint { fill: #9198a1; }
    .line { stroke: #3d444d; } .ours { fill: #3fb68b; } .peer { fill: #d29922; }
  }
  text { font: 13px system-ui, sans-serif; } .title { font-size: 16px; font-weight: 600; }
"""


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
    return "\n".join(
        [
            _opening(height, title),
            f"<style>{_STYLE}</style>",
            f'<rect class="back" width="{_WIDTH}" height="{height}" rx="8"/>',
            _text(16, 28, title, "text title"),
            *_legend(peer),
            *_grid(scale, height - _BOTTOM),
            *rows,
            "</svg>\n",
        ]
    )


def _opening(height: int, title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" role="img" aria-label={quoteattr(title)}>'
    )


class _Scale:
    """Whole powers of ten on the way from the labels to the right edge."""

    def __init__(self, *, low: int, high: int) -> None:
        self.low = low
        self.high = max(high, low + 1)

    def x(self, us: float) -> float:
        share = (math.log10(us) - self.low) / (self.high - self.low)
        return _LABELS + share * (_WIDTH - _LABELS - _RIGHT)


def _legend(peer: str) -> list[str]:
    return [
        f'<rect class="ours" x="16" y="42" width="{_BAR}" height="{_BAR}" rx="2"/>',
        _text(38, 54, "Parlour", "text"),
        f'<rect class="peer" x="110" y="42" width="{_BAR}" height="{_BAR}" rx="2"/>',
        _text(132, 54, peer, "text"),
        _text(_WIDTH - 16, 54, "processor time, logarithmic; shorter is better", "faint", anchor="end"),
    ]


def _grid(scale: _Scale, bottom: int) -> list[str]:
    lines: list[str] = []
    for power in range(scale.low, scale.high + 1):
        x = scale.x(10.0**power)
        lines.append(f'<line class="line" x1="{x:.1f}" y1="{_TOP - 8}" x2="{x:.1f}" y2="{bottom}"/>')
        lines.append(_text(x, bottom + 18, in_words(10.0**power), "faint", anchor="middle"))
    return lines


def _case(one: Bars, y: int, scale: _Scale) -> list[str]:
    start = scale.x(10.0**scale.low)
    lines = [_text(_LABELS - 12, y + _BAR + 6, one.label, "text", anchor="end")]
    for offset, us, name in ((0, one.ours_us, "ours"), (_BAR + 2, one.peer_us, "peer")):
        # A time on the scale's lower end still gets a bar that can be seen.
        width = max(scale.x(us) - start, 2.0)
        box = f'x="{start:.1f}" y="{y + offset}" width="{width:.1f}" height="{_BAR}"'
        lines.append(f'<rect class="{name}" {box} rx="2"/>')
        words = in_words(us) if name == "ours" else f"{in_words(us)}, {one.ratio:.0f} times"
        lines.append(_text(start + width + 6, y + offset + 12, words, "text"))
    return lines


def in_words(us: float) -> str:
    """Microseconds as people write them: `8 µs`, `1.3 ms`, `20 s`."""
    for size, unit in ((1e6, "s"), (1e3, "ms"), (1.0, "µs")):
        if us >= size:
            value = us / size
            return f"{value:.0f} {unit}" if value >= 10 or value == int(value) else f"{value:.1f} {unit}"
    return f"{us:.1f} µs"


def _text(x: float, y: float, words: str, css: str, *, anchor: str = "start") -> str:
    return f'<text class="{css}" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'
