"""The benchmark's numbers as a table that fits a screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench_ratios import CJK, NATURAL

KINDS_AT = "10000"  # chunks of the memory of which every kind of query is told stage by stage


def print_report(result: dict[str, Any]) -> None:
    machine = result["machine"]
    facts = [f"{machine['cores']} cores, load {machine['load_before']:.1f} → {machine['load_after']:.1f}"]
    tables = []
    if corpus := result.get("corpus"):
        facts.insert(0, f"{corpus['notes']} notes, {corpus['chunks']} chunks, {corpus['passages']} passages")
        tables += [_index(result), _search(result), _save(result), _rest(result)]
    if "intake" in result:
        tables.append(_intake(result["intake"]))
    if "load" in result:
        tables.append(_load(result))
    if "idle" in result:
        tables.append(_quiet(result))
    if growth := result.get("growth"):
        tables += growth_tables(growth)
    print("\n" + " · ".join(["memoryd bench", *facts]))
    for rows in tables:
        print()
        for row in rows:
            print(f"  {format_row(row)}")
    print()
    for bar, held in result["bars"].items():
        print(f"  {'✓' if held else '✗'} {bar}")


Row = tuple[str, str, str]


def format_row(row: Row) -> str:
    name, value, beside = row
    return f"{name:<38}{value:>16}   {beside}".rstrip()


def growth_tables(growth: dict[str, Any]) -> list[list[Row]]:
    """Every kind of query, stage by stage, in one of the memories, and how cost grows."""
    kinds = [_kinds(measured) for size, measured in growth.items() if size == KINDS_AT]
    return [*kinds, _growth(growth)]


def _index(result: dict[str, Any]) -> list[Row]:
    index = result["index"]
    tried = sorted(result["raw_settings"].items(), key=lambda item: -item[1])
    return [
        ("INDEX", "passages/s", "beside llama.cpp alone"),
        *(
            ("llama.cpp alone", f"{raw['rate']:.1f}", f"{setting} ({raw['texts']} texts)")
            for setting, raw in index["raw"].items()
        ),
        *(("  tried on few texts", f"{rate:.1f}", setting) for setting, rate in tried),
        (
            "memoryd, first embed → current",
            f"{index['rate']:.1f}",
            f"{index['ratio']:.2f} × the best ({index['passages']} passages in {index['seconds']:.1f} s)",
        ),
        (
            "CPU per passage, memoryd",
            f"{index['cpu_ms_per_passage']:.1f} ms",
            f"llama.cpp alone {index['raw_cpu_ms_per_passage']:.1f} ms",
        ),
    ]


def _search(result: dict[str, Any]) -> list[Row]:
    search = result["search"]
    bare, whole, busy = search["bare_ms"], search["search_ms"], search["while_indexing"]
    stages = [
        (f"  {stage}", _both(times), f"{times['p50'] / bare['p50']:.1f} ×")
        for stage, times in search["stages_ms"].items()
    ]
    return [
        (f"SEARCH, warm, {search['queries']} queries", "p50 / p95 ms", "beside a bare embedding"),
        ("bare query embedding", _both(bare), ""),
        ("search over the socket", _both(whole), f"{search['ratio']:.1f} ×"),
        *stages,
        *_limits(search["limits"], bare),
        ("while new notes are indexed", _both(busy), f"{busy['queries']} queries"),
    ]


def _intake(intake: dict[str, Any]) -> list[Row]:
    burst, rescan, change, rebuild = (intake[part] for part in ("burst", "rescan", "change", "rebuild"))
    return [
        ("INDEXING BESIDES EMBEDDING", "", "beside the bare work"),
        (
            f"{burst['files']} small files at once, CPU each",
            f"{burst['cpu_ms']:.2f} ms",
            f"read into FTS5 alone {burst['bare_ms']:.2f} ms",
        ),
        (
            f"rescan of {rescan['files']} unchanged files",
            f"{rescan['seconds']:.2f} s",
            f"scandir and stat alone {rescan['bare_s']:.2f} s",
        ),
        (
            f"one line changed in {change['chunks']} chunks",
            _both(change["cpu_ms"]),
            f"ms of CPU, p50 / p95; {change['texts']} texts embedded at most; split alone {change['bare_ms']:.1f} ms",
        ),
        (
            f"{rebuild['vectors']} vectors from the cache",
            f"{rebuild['rate']:.0f}/s",
            f"in {rebuild['commits']} commits; LanceDB alone, in one: {rebuild['bare_rate']:.0f}/s",
        ),
    ]


def _load(result: dict[str, Any]) -> list[Row]:
    load, idle = result["load"], result["idle_connections"]
    rows: list[Row] = [
        (f"{load['connections']} CLIENTS", "p50 / p95 ms", "mixed searches"),
        ("one client alone", _both(load["alone_ms"]), ""),
    ]
    for name, pace in ((f"{load['rate']:g} a second", load["paced"]), ("flat out", load["flat_out"])):
        for phase, words in (("idle", "nothing to index"), ("indexing", "everything indexed again")):
            heard = pace[phase]
            times = "" if phase == "idle" else f"p95 {pace['ratio']:.1f} × idle, "
            rows.append(
                (f"{name}, {words}", _both(heard["ms"]), f"{times}{heard['searches']} searches, {_faults(heard)}")
            )
    return [*rows, (f"{idle['connections']} idle connections", f"{idle['mb']:.0f} MB", "")]


def _quiet(result: dict[str, Any]) -> list[Row]:
    idle, sleep = result["idle"], result["sleep"]
    return [
        (f"IDLE, {idle['seconds']:g} s", "", ""),
        ("CPU", f"{idle['cpu_percent']:.3f} %", ""),
        ("wake-ups a minute", f"{idle['wakeups_a_minute']:.0f}", f"{idle['others']} not by the clock"),
        *(
            (f"  {name}", f"{thread['wakeups_a_minute']:.0f}", f"{thread['cpu_ms']:.1f} ms of CPU")
            for name, thread in idle["threads"].items()
        ),
        ("memory, model awake", f"{sleep['awake_mb']:.0f} MB", ""),
        ("memory, model asleep", f"{sleep['asleep_mb']:.0f} MB", ""),
        ("waking the model", f"{sleep['wake_ms']:.0f} ms", f"the search that waits: {sleep['first_search_ms']:.0f} ms"),
    ]


def _faults(heard: dict[str, Any]) -> str:
    return f"{heard['errors']} errors, {heard['crossed']} crossed, {heard['lost']} lost"


def _kinds(measured: dict[str, Any]) -> list[Row]:
    """The first kind of query with its stages and limits below it, the others with their stages beside them."""
    (kind, first), *others = measured["kinds"].items()
    bare = first["bare_ms"]
    return [
        (f"SEARCH IN {measured['chunks']:,} CHUNKS, warm", "p50 / p95 ms", "beside a bare embedding"),
        ("bare query embedding", _both(bare), ""),
        (kind, _both(first["search_ms"]), f"{first['ratio']:.1f} × (CPU {first['cpu_ms']:.1f} ms)"),
        *(
            (f"  {stage}", _both(times), f"{times['p50'] / bare['p50']:.1f} ×")
            for stage, times in first["stages_ms"].items()
        ),
        *_limits(measured["limits"], bare),
        *((kind, _both(other["search_ms"]), f"{other['ratio']:.1f} × · {_stages(other)}") for kind, other in others),
    ]


def _limits(limits: dict[str, Any], bare: dict[str, float]) -> list[Row]:
    """What the stages cost by themselves."""
    names = {
        "fts5_words_ms": "  limit: FTS5 alone, words",
        "fts5_trigrams_ms": "  limit: FTS5 alone, trigrams",
        "numpy_ms": "  limit: numpy alone, nearest",
    }
    vectors = {"numpy_ms": f", {limits['vectors']:,} vectors"}
    return [
        (words, _both(limits[name]), f"{limits[name]['p50'] / bare['p50']:.1f} ×{vectors.get(name, '')}")
        for name, words in names.items()
    ]


def _stages(measured: dict[str, Any]) -> str:
    return ", ".join(f"{stage} {times['p50']:.0f}" for stage, times in measured["stages_ms"].items())


def _rested(rows: list[dict[str, Any]], line: Callable[[str, list[str]], Row]) -> list[Row]:
    return [
        line(f"bare, each after {rows[0]['rest_s'] * 1000:.0f} ms of rest", [_both(row["bare_ms"]) for row in rows]),
        line("search, each after a rest", [_both(row["search_ms"]) for row in rows]),
        line("  beside a bare embedding", [f"{row['ratio']:.1f} ×" for row in rows]),
    ]


def _growth(growth: dict[str, Any]) -> list[Row]:
    """A column a size."""
    rows = list(growth.values())
    found = [row["kinds"][NATURAL] for row in rows]
    keywords = [row["keywords_ms"] for row in rows]

    def line(name: str, values: list[str]) -> Row:
        return name, values[0], "".join(f"{value:>16}" for value in values[1:])

    def disk(part: str) -> list[str]:
        estimated = [part == "cache" and row["disk"]["cache_estimated"] for row in rows]
        values = [f"{row['disk'][part] / 1e6:,.0f} MB" for row in rows]
        return [f"({value})" if guess else value for value, guess in zip(values, estimated, strict=True)]

    return [
        line("HOW COST GROWS, chunks", [f"{row['chunks']:,}" for row in rows]),
        line("bare query embedding, p50 / p95 ms", [_both(each["bare_ms"]) for each in found]),
        line("search, p50 / p95 ms", [_both(each["search_ms"]) for each in found]),
        line("  beside a bare embedding", [f"{each['ratio']:.1f} ×" for each in found]),
        *(
            line(f"  {stage}", [_both(each["stages_ms"][stage]) for each in found])
            for stage in found[0]["stages_ms"]
            if all(stage in each["stages_ms"] for each in found)
        ),
        *(
            line(kind, [_both(row["kinds"][kind]["search_ms"]) for row in rows])
            for kind in rows[0]["kinds"]
            if kind != NATURAL and all(kind in row["kinds"] for row in rows)
        ),
        *_rested([row["rested"] for row in rows], line),
        line("keywords alone, p50 / p95 ms", [_both(each[NATURAL]) for each in keywords]),
        line("  Chinese, Japanese, Korean", [_both(each[CJK]) for each in keywords]),
        line("FTS5 alone, words", [_both(row["limits"]["fts5_words_ms"]) for row in rows]),
        line("FTS5 alone, trigrams", [_both(row["limits"]["fts5_trigrams_ms"]) for row in rows]),
        line("numpy over all vectors", [_both(row["limits"]["numpy_ms"]) for row in rows]),
        line(
            "index a chunk, CPU / wall ms", [f"{r['index']['cpu_ms']:.2f} / {r['index']['wall_ms']:.2f}" for r in rows]
        ),
        line("  FTS5 alone, CPU ms", [f"{row['index']['bare_ms']:.2f}" for row in rows]),
        line("start → words / and meaning, s", [_start(row["start_s"]) for row in rows]),
        line("memory, resident / of its own, MB", [_memory(row["memory_mb"]) for row in rows]),
        line("disk, beside the text", [f"{row['disk']['ratio']:.1f} ×" for row in rows]),
        line("  the text", [f"{row['text_bytes'] / 1e6:,.0f} MB" for row in rows]),
        line("  ledger", disk("ledger")),
        line("  LanceDB", disk("vectors")),
        line("  file without a name", disk("unnamed")),
        line("  embedding cache", disk("cache")),
    ]


def _start(start: dict[str, float]) -> str:
    return f"{start['keyword']:.1f} / {start['hybrid']:.1f}"


def _memory(memory: dict[str, float]) -> str:
    return f"{memory['resident']:,.0f} / {memory['own']:,.0f}"


def _save(result: dict[str, Any]) -> list[Row]:
    save = result["save"]
    return [
        (f"SAVE → SEARCHABLE, {save['saves']} saves", "p50 / p95 ms", ""),
        ("found by its words", _both(save["keyword_ms"]), ""),
        ("its vectors are there", _both(save["vector_ms"]), ""),
    ]


def _rest(result: dict[str, Any]) -> list[Row]:
    memory, start, cli = result["memory"], result["start"], result["cli"]
    return [
        ("DAEMON", "", ""),
        ("memory, peak", f"{memory['peak_mb']:.0f} MB", ""),
        ("memory, idle afterwards", f"{memory['idle_mb']:.0f} MB", ""),
        ("warm start → first answer", f"{start['keyword_s']:.2f} s", ""),
        ("warm start → words and meaning", f"{start['hybrid_s']:.2f} s", ""),
        ("stop", f"{start['stop_s']:.2f} s", ""),
        (
            "cold 'memoryd search', wall / CPU",
            f"{cli['search_wall_ms']:.0f} / {cli['search_cpu_ms']:.0f} ms",
            f"{cli['ratio']:.2f} × python -c pass ({cli['python_wall_ms']:.0f} / {cli['python_cpu_ms']:.0f} ms)"
            f" and the query ({cli['query_wall_ms']:.0f} ms)",
        ),
    ]


def _both(times: dict[str, float]) -> str:
    return f"{times['p50']:.1f} / {times['p95']:.1f}"
