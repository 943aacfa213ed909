"""The voice bench as a picture: one bar for each ratio, with its target as a line, as SVG written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.svg import WIDTH, document, text

_LABELS = 300
_RIGHT = 190
_ROW = 34
_BAR = 18
_TOP = 84
_BOTTOM = 34

_LIGHT = ".goal { stroke: #9a6700; stroke-width: 2; }"
_DARK = ".goal { stroke: #d29922; }"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One ratio; 1 is the bare recogniser's time."""

    label: str
    ratio: float
    target: float
    words: str
    """The text beside the bar."""


def plot(bars: Sequence[Bar], *, title: str) -> str:
    """The whole SVG document. Raises ValueError when there is nothing to show or a ratio is negative."""
    if not bars or min(bar.ratio for bar in bars) < 0:
        raise ValueError("a plot needs ratios that are not negative")
    height = _TOP + _ROW * len(bars) + _BOTTOM
    most = max(1.0, *(bar.ratio for bar in bars))
    rows = [line for number, bar in enumerate(bars) for line in _row(bar, _TOP + _ROW * number, most)]
    body = [*_legend(), *_grid(height - _BOTTOM, most), *rows]
    return document(title, height, body, light=_LIGHT, dark=_DARK)


def _legend() -> list[str]:
    return [
        f'<rect class="ours" x="16" y="44" width="{_BAR}" height="14" rx="2"/>',
        text(42, 56, "Parlour", "text"),
        '<line class="goal" x1="118" y1="42" x2="118" y2="60"/>',
        text(128, 56, "target", "text"),
        text(WIDTH - 16, 56, "1 = faster-whisper with its defaults; shorter is better", "faint", "end"),
    ]


def _x(ratio: float, most: float) -> float:
    return _LABELS + ratio / most * (WIDTH - _LABELS - _RIGHT)


def _grid(bottom: int, most: float) -> list[str]:
    lines: list[str] = []
    for quarter in range(int(most * 4) + 1):
        x = _x(quarter / 4, most)
        lines.append(f'<line class="line" x1="{x:.1f}" y1="{_TOP - 8}" x2="{x:.1f}" y2="{bottom}"/>')
        lines.append(text(x, bottom + 18, f"{quarter / 4:g}", "faint", "middle"))
    return lines


def _row(bar: Bar, y: int, most: float) -> list[str]:
    start, goal = _x(0.0, most), _x(bar.target, most)
    # A ratio near zero still gets a bar that can be seen.
    width = max(_x(bar.ratio, most) - start, 2.0)
    return [
        text(_LABELS - 12, y + 14, bar.label, "text", "end"),
        f'<rect class="ours" x="{start:.1f}" y="{y}" width="{width:.1f}" height="{_BAR}" rx="2"/>',
        f'<line class="goal" x1="{goal:.1f}" y1="{y - 3}" x2="{goal:.1f}" y2="{y + _BAR + 3}"/>',
        text(max(start + width, goal) + 8, y + 14, f"{bar.ratio:.2f}  {bar.words}", "text"),
    ]
