"""The simulation as a picture: what each part lets through by the number of processes, as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bench.svg import WIDTH, document, text

_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 190, 66, 46
_HEIGHT = 440
_COLOURS = {
    "one": ("#1a7f64", "#3fb68b"),
    "two": ("#9a6700", "#d29922"),
    "three": ("#0969da", "#58a6ff"),
    "four": ("#cf222e", "#ff7b72"),
    "five": ("#8250df", "#bc8cff"),
}
_NAMES = tuple(_COLOURS)


def plot(
    processes: Sequence[int],
    series: Mapping[str, Sequence[float]],
    levels: Mapping[str, float],
    *,
    title: str,
) -> str:
    """The whole document: a line for each part, and a level line for each load. Raises ValueError when there
    is nothing to show, or more than five parts."""
    if len(processes) < 2 or not series or len(series) > len(_NAMES):
        raise ValueError("a plot needs two numbers of processes and one to five parts")
    shown = [value for values in series.values() for value in values if _is_shown(value)]
    scale = _Scale(processes, [*shown, *levels.values()])
    body = [*_grid(scale, processes)]
    taken: list[float] = []
    for name, css in zip(series, _NAMES, strict=False):
        body += _line(name, css, processes, series[name], scale, taken)
    for words, value in levels.items():
        y = scale.y(value)
        body.append(f'<line class="need" x1="{_LEFT}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}"/>')
        body.append(text(_LEFT + 6, round(y - 6), words, "faint"))
    light, dark = ("".join(_rules(theme)) for theme in (0, 1))
    return document(title, _HEIGHT, body, light=light, dark=dark)


class _Scale:
    """Both axes are logarithmic."""

    def __init__(self, processes: Sequence[int], values: Sequence[float]) -> None:
        self._first, self._last = math.log10(processes[0]), math.log10(processes[-1])
        self.low, self.high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def x(self, processes: float) -> float:
        share = (math.log10(processes) - self._first) / (self._last - self._first)
        return _LEFT + share * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        share = (math.log10(value) - self.low) / max(1, self.high - self.low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def _rules(theme: int) -> list[str]:
    rules = [
        f".{name} {{ stroke: {colours[theme]}; fill: none; stroke-width: 2; }} "
        f".{name}-text {{ fill: {colours[theme]}; }} "
        for name, colours in _COLOURS.items()
    ]
    grey = ("#59636e", "#9198a1")[theme]
    return [*rules, f".need {{ stroke: {grey}; stroke-dasharray: 5 4; }}"]


def _grid(scale: _Scale, processes: Sequence[int]) -> list[str]:
    lines = [text(16, 52, "turns a second that each part lets through; both scales logarithmic", "faint")]
    for power in range(scale.low, scale.high + 1):
        y = scale.y(10.0**power)
        lines.append(f'<line class="line" x1="{_LEFT}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}"/>')
        lines.append(
            text(
                _LEFT - 8,
                round(y + 4),
                f"{10**power:,}" if power >= 0 else f"{10.0**power:g}",
                "faint",
                "end",
            )
        )
    below = _HEIGHT - _BOTTOM + 18
    lines += [text(scale.x(number), below, str(number), "faint", "middle") for number in processes]
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    return [*lines, text(middle, _HEIGHT - 10, "processes", "faint", "middle")]


def _line(
    name: str,
    css: str,
    processes: Sequence[int],
    values: Sequence[float],
    scale: _Scale,
    taken: list[float],
) -> list[str]:
    points = [
        (scale.x(number), scale.y(value))
        for number, value in zip(processes, values, strict=True)
        if _is_shown(value)
    ]
    if not points:
        return []
    way = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    # Labels of lines that end near each other go below each other.
    y = points[-1][1] + 4
    while any(abs(y - other) < 16 for other in taken):
        y += 16
    taken.append(y)
    return [
        f'<polyline class="{css}" points="{way}"/>',
        text(points[-1][0] + 8, round(y), name, f"{css}-text"),
    ]


def _is_shown(value: float) -> bool:
    return 0 < value < math.inf
