"""The picture that ``memoryd status --watch`` keeps up to date: one screen, whatever its size.

Every line is one line of the terminal, so what fits can be counted: the verdict and what needs doing always do,
then the gauges, then as many queries and workspaces as there is room for.
"""

from __future__ import annotations

import textwrap
from datetime import datetime
from typing import Any

from rich.text import Text

from memoryd.daemon.commands.output import ago, embedder_name, plural, size, span, until
from memoryd.daemon.commands.verdict import verdict_of

STAGES = {  # of a query, in order, and the colours of their parts of its bar
    "hyde": "magenta",
    "rerank": "bright_magenta",
    "words": "green",
    "trigram": "yellow",
    "embed": "blue",
    "vector": "cyan",
    "rank": "white",
}
WIDE = 120  # columns from which on queries have bars
_ROOMY = 100  # columns from which on nothing needs to be left out of a line
_LOW, _HIGH = 18, 30  # lines: below the one some gauges are left out, from the other on there are more
_BARS = "▁▂▃▄▅▆▇█"
_LABEL = 11
_FEWEST_ROWS = 3


def compose(status: dict[str, Any], cpu_share: float, width: int, height: int, trouble: str | None = None) -> Text:
    """The whole screen, at most ``height`` lines of at most ``width`` columns."""
    head = [_headline(status, width, trouble), *_needs(status, width, max(4, height - 16))]
    gauges = _gauges(status, cpu_share, width, height - len(head))
    foot = Text("q quits", style="dim")
    room = height - len(head) - len(gauges) - 3  # two empty lines and the foot
    workspaces = _workspaces(status)
    searches = _searches(status, width)
    shown = min(len(workspaces), max(2, room - 1 - min(len(searches), 1 + _FEWEST_ROWS)))
    tables = [*_some(workspaces, shown), Text(), *_some(searches, room - shown - 1)]
    lines = [*head, Text(), *gauges, Text(), *tables][: height - 1]
    lines += [Text()] * (height - 1 - len(lines))
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return Text("\n", no_wrap=True, end="").join([*lines, foot])


def sparkline(values: list[float]) -> str:
    """Bars from nothing to the highest value."""
    most = max(values, default=0)
    return "".join(_BARS[0] if not value else _BARS[1 + round((len(_BARS) - 2) * value / most)] for value in values)


def _headline(status: dict[str, Any], width: int, trouble: str | None) -> Text:
    mark, colour, words = verdict_of(status) if trouble is None else ("✗", "red", trouble)
    left = Text(f"{mark} memoryd: {words}", style=f"bold {colour}")
    facts = f"{status['version']} · pid {status['pid']} · up {span(status['uptime_s'])}"
    gap = width - left.cell_len - len(facts)
    if gap >= 2:
        left.append(" " * gap + facts, style="not bold dim default")
    return left


def _needs(status: dict[str, Any], width: int, most: int) -> list[Text]:
    """What is wrong and what to do about it, whole where there is room."""
    lines = []
    for reason in status["health"]["reasons"]:
        wrapped = textwrap.wrap(reason["message"], width - 2, initial_indent="  ", subsequent_indent="  ")
        lines += [Text(line, style="yellow") for line in wrapped]
        wrapped = textwrap.wrap(reason["hint"] or "", width - 2, initial_indent="  → ", subsequent_indent="    ")
        lines += [Text(line) for line in wrapped]
    return _some(lines, most)


def _gauges(status: dict[str, Any], cpu_share: float, width: int, height: int) -> list[Text]:
    measures, stores = status["measures"], status["stores"]
    process, embedder = measures["process"], status["embedder"]
    lines = [
        _search_gauge(measures, width),
        _indexing_gauge(measures, width),
        _line("queue", _queue(status["queue"])),
        _line(
            "daemon",
            f"CPU {cpu_share:.0%} · memory {size(process['resident_bytes'])} · "
            f"{process['open_files']:,} of {process['open_files_limit']:,} files open · "
            f"{plural(status['server']['connections'], 'client')}",
        ),
    ]
    if height < _LOW:
        return lines
    model = f"{embedder_name(embedder)} · {embedder['state']}"
    model += f" · {embedder['reason']}" if embedder["reason"] else ""
    if asleep := embedder["asleep"]:
        model += f" · asleep, wakes in about {_ms(asleep['wakes_in_ms'])}"
    if paused := embedder["paused"]:
        model += f" · embedding paused: {paused['reason']}"
    lines += [_line("model", model), _line("stores", _stores(stores, width))]
    if height < _HIGH:
        return lines
    runs = sorted(status["scheduler"].items(), key=lambda run: run[1])
    lines.append(_line("schedule", " · ".join(f"{name} {until(at)}" for name, at in runs)))
    if status["last_errors"]:
        error = status["last_errors"][0]
        lines.append(_line("last error", f"{ago(error['at'])}: {error['job']}: {error['reason']}"))
    return lines


def _stores(stores: dict[str, Any], width: int) -> str:
    vectors = stores["vectors"]
    held = f"vectors {size(vectors['bytes'])}" if vectors else "vectors not open"
    if vectors and width >= _ROOMY:
        held += f" ({plural(vectors['versions'], 'version')}, {plural(vectors['fragments'], 'fragment')})"
    return f"ledger {size(stores['ledger']['bytes'])} · {held} · cache {size(stores['embedding_cache']['bytes'])}"


def _search_gauge(measures: dict[str, Any], width: int) -> Text:
    search = measures["requests"].get("search")
    line = _line("search", "")
    if not search or not search["in_window"]:
        return line.append(f"no query in the last {span(measures['window_s'])}", style="dim")
    for name in ("p50", "p95", "p99", "max") if width >= _ROOMY else ("p50", "p95", "p99"):
        line.append(f"{name} ", style="dim").append(f"{_ms(search[f'{name}_ms'])}   ", style="bold")
    queries = "1 query" if search["in_window"] == 1 else f"{search['in_window']:,} queries"
    line.append(f"{queries} in {span(measures['window_s'])}", style="dim")
    if width >= _ROOMY:  # the last ones, the newest at the right
        line.append(f"   {sparkline([each['took_ms'] for each in reversed(measures['last_searches'])])}", style="cyan")
    return line


def _indexing_gauge(measures: dict[str, Any], width: int) -> Text:
    throughput = measures["throughput"]
    passages, files, step = throughput["passages"], throughput["files"], throughput["step_s"]
    lately = 5  # steps: what "now" means
    rate = sum(passages[-lately:]) / (lately * step)
    words = (
        f"{rate:.1f} passages/s"
        if rate
        else f"{sum(passages)} passages, {sum(files)} files in {span(len(files) * step)}"
    )
    bars = max(10, min(len(passages), width - _LABEL - len(words) - 2))
    line = _line("indexing", "").append(sparkline(passages[-bars:]), style="cyan")
    return line.append(f"  {words}", style="bold" if rate else "dim")


def _queue(queue: dict[str, Any]) -> str:
    waiting = [f"{kind} {count:,}" for kind, count in queue["by_kind"].items() if not kind.endswith(" parked")]
    if queue["depth"]:
        waiting.append(f"the oldest for {span(queue['oldest_s'] or 0)}")
    parked = [f"{queue['parked']} parked"] if queue["parked"] else []
    return " · ".join([*(waiting or ["empty"]), *parked])


def _workspaces(status: dict[str, Any]) -> list[Text]:
    names = [workspace["name"] for workspace in status["workspaces"]]
    wide = min(24, max(9, *map(len, names)) if names else 9)
    rows = [Text(f"{'workspace':{wide}}   files  indexed  pending  failed  skipped        vectors  watcher", "dim")]
    for workspace in status["workspaces"]:
        watcher = workspace["watcher"]
        seen = f", event {ago(watcher['last_event'])}" if watcher["last_event"] else ""
        files = f"{workspace['files_on_disk']:,}" if workspace["available"] else "away"
        row = Text(f"{workspace['name'][:wide]:{wide}}")
        row.append(f"{files:>8}{workspace['indexed']:>9,}")
        row.append(f"{workspace['pending']:>9,}", style="bold cyan" if workspace["pending"] else "")
        row.append(f"{len(workspace['failed']):>8,}", style="bold red" if workspace["failed"] else "")
        row.append(f"{workspace['skipped_count']:>9,}", style="yellow" if workspace["skipped_count"] else "")
        row.append(f"{workspace['vectors']:>8,}/{workspace['passages']:<7,}{watcher['mode']}{seen}")
        rows.append(row)
    return rows


def _searches(status: dict[str, Any], width: int) -> list[Text]:
    searches = status["measures"]["last_searches"]
    if not searches:
        return []
    stages = [stage for stage in STAGES if any(stage in search["stages"] for search in searches)]
    head = Text(f"{'last queries':12}{'took':>9}  ", style="dim")
    for stage in stages:
        head.append(f"{stage:>9}", style=STAGES[stage])
    rows = [head.append(f"{'hits':>6}")]
    slowest = max(search["took_ms"] for search in searches)
    bar = width - 12 - 11 - 9 * len(stages) - 8 if width >= WIDE else 0
    for search in searches:
        at = datetime.fromisoformat(search["at"]).astimezone().strftime("%H:%M:%S")
        row = Text(f"{at:12}").append(f"{_ms(search['took_ms']):>9}  ", style="bold")
        for stage in stages:
            took = search["stages"].get(stage)
            row.append(f"{_ms(took):>9}" if took is not None else f"{'·':>9}", style="" if took else "dim")
        row.append(f"{search['results']:>6}")
        if bar > 0:
            row.append("  ")
            for stage in stages:
                row.append("█" * round(bar * search["stages"].get(stage, 0) / slowest), style=STAGES[stage])
        elif search["degraded"]:
            row.append(" ▲", style="yellow")
        rows.append(row)
    return rows


def _line(label: str, words: str) -> Text:
    return Text(f"{label:{_LABEL}}", style="dim").append(words, style="not dim default")


def _some(lines: list[Text], most: int) -> list[Text]:
    """The first lines; where some must go, the last one shown says how many."""
    if len(lines) <= most:
        return lines
    return [*lines[: max(0, most - 1)], Text(f"  … {len(lines) - most + 1} more lines", style="dim")][: max(0, most)]


def _ms(milliseconds: float) -> str:
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds:.0f} ms" if milliseconds >= 100 else f"{milliseconds:.1f} ms"
