"""Two small plots as SVG, drawn by hand: bars in groups, and lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 960, 400
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 56, 80
COLOURS = ("#7da7d9", "#8cc9a1", "#e8b04b", "#b8b8b8", "#c0392b", "#8e6bbf", "#444444")


def draw_bars(title: str, groups: Sequence[str], series: Mapping[str, Sequence[float]]) -> str:
    """A group of bars for each name, one bar a series; values from 0 to 1."""
    wide = (WIDTH - LEFT - RIGHT) / len(groups)
    bar = wide * 0.8 / len(series)
    parts = [*_axis(0.0)]
    for place, name in enumerate(groups):
        middle = LEFT + wide * (place + 0.5)
        foot = HEIGHT - BOTTOM + 14
        parts.append(text(middle, foot, name, "end", f"rotate(-25 {middle:.0f} {foot})"))
        for number, values in enumerate(series.values()):
            left, top = middle - wide * 0.4 + bar * number, _height(values[place], 0.0)
            size = f'width="{bar - 1:.1f}" height="{HEIGHT - BOTTOM - top:.1f}"'
            parts.append(f'<rect x="{left:.1f}" y="{top:.1f}" {size} fill="{COLOURS[number]}"/>')
    return picture(title, list(series), parts)


def draw_lines(title: str, places: Sequence[int], series: Mapping[str, Sequence[float]]) -> str:
    """A line a series over whole numbers; values from the tenth below the least of them to 1."""
    floor = min(9, *(int(value * 10) for values in series.values() for value in values)) / 10
    step = (WIDTH - LEFT - RIGHT) / len(places)
    across = [LEFT + step * (place + 0.5) for place in range(len(places))]
    parts = [*_axis(floor), text(WIDTH / 2, HEIGHT - BOTTOM + 42, "k", "middle")]
    parts += [text(x, HEIGHT - BOTTOM + 18, str(place), "middle") for x, place in zip(across, places, strict=True)]
    for number, values in enumerate(series.values()):
        points = [(x, _height(value, floor)) for x, value in zip(across, values, strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[number]}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{COLOURS[number]}"/>' for x, y in points]
    return picture(title, list(series), parts)


def _height(value: float, floor: float) -> float:
    share = (value - floor) / (1 - floor)
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _axis(floor: float) -> Iterator[str]:
    for tenth in range(round(floor * 10), 11):
        y = _height(tenth / 10, floor)
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#e4e4e4"/>'
        yield text(LEFT - 8, y + 4, f"{tenth / 10:.1f}", "end")


def text(x: float, y: float, words: str, anchor: str, transform: str = "") -> str:
    turned = f' transform="{transform}"' if transform else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turned}>{escape(words)}</text>'


def picture(title: str, names: Sequence[str], parts: Sequence[str]) -> str:
    legend, x = [], float(LEFT)
    for number, name in enumerate(names):
        legend.append(f'<rect x="{x:.1f}" y="32" width="12" height="12" fill="{COLOURS[number]}"/>')
        legend.append(text(x + 18, 42, name, "start"))
        x += 44 + 7 * len(name)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
            ' font-size="12" fill="#333">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
            f'<text x="{LEFT}" y="20" font-size="15" font-weight="bold">{escape(title)}</text>',
            *legend,
            *parts,
            "</svg>\n",
        )
    )
