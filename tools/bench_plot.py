"""Lines over the size of a memory, both axes logarithmic, as SVG drawn by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from quality_plot import BOTTOM, COLOURS, HEIGHT, LEFT, RIGHT, TOP, WIDTH, picture, text

_INSIDE = 24  # between the axes and the first and last point


def draw_growth(title: str, chunks: Sequence[int], series: Mapping[str, Sequence[float]]) -> str:
    """A line a series, a point a size; what is 0 has no place on such an axis and is left out."""
    values = [value for line in series.values() for value in line if value > 0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    first, last = math.log10(min(chunks)), math.log10(max(chunks))
    wide, tall = WIDTH - LEFT - RIGHT - 2 * _INSIDE, HEIGHT - TOP - BOTTOM

    def across(count: float) -> float:
        return LEFT + _INSIDE + (math.log10(count) - first) / max(last - first, 1e-9) * wide

    def up(value: float) -> float:
        return HEIGHT - BOTTOM - (math.log10(value) - low) / (high - low) * tall

    parts: list[str] = []
    for decade in range(low, high + 1):
        for step in range(1, 10) if decade < high else [1]:
            y = up(step * 10.0**decade)
            colour = "#d4d4d4" if step == 1 else "#f1f1f1"
            parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="{colour}"/>')
            if step in (1, 2, 5):
                parts.append(text(LEFT - 8, y + 4, f"{step * 10.0**decade:,.{max(0, -decade)}f}", "end"))
    parts += [text(across(count), HEIGHT - BOTTOM + 18, f"{count:,}", "middle") for count in chunks]
    parts.append(text(WIDTH / 2, HEIGHT - BOTTOM + 42, "chunks", "middle"))
    for number, line in enumerate(series.values()):
        points = [(across(count), up(value)) for count, value in zip(chunks, line, strict=True) if value > 0]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[number]}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{COLOURS[number]}"/>' for x, y in points]
    return picture(title, list(series), parts)
