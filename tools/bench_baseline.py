"""What is kept of a run of the benchmark: docs/bench/baseline.json, and the plots of how cost grows."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench_plot import draw_growth
from bench_ratios import NATURAL, Ratio, ratios_of

FILE = "baseline.json"
_NOT_FIGURES = ("machine", "bars")
_STAGE_OF = {"intake": "intake", "load": "load", "idle_connections": "load", "idle": "idle", "sleep": "idle"}


def describe_machine() -> dict[str, Any]:
    """What ratios depend on, if on anything; no name by which the machine could be found."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": names[0] if names else platform.machine(),
        "memory_gb": round(memory / 2**30),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def read_baseline(folder: Path) -> dict[str, Ratio]:
    kept = json.loads((folder / FILE).read_text(encoding="utf-8"))
    return {name: Ratio(**ratio) for name, ratio in kept["ratios"].items()}


def keep_result(result: Mapping[str, Any], folder: Path) -> None:
    """The stages that were measured replace those that were kept before; of growth, the sizes."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / FILE
    before = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    kept = merge(before, result, f"{datetime.now(UTC):%Y-%m-%d}")
    file.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    for name, picture in draw(kept["figures"].get("growth", {})).items():
        (folder / name).write_text(picture, encoding="utf-8")


def merge(before: Mapping[str, Any], result: Mapping[str, Any], day: str) -> dict[str, Any]:
    """Pure: the baseline with a run's figures in it."""
    figures = dict(before.get("figures", {}))
    measured = dict(before.get("measured", {}))
    machine = result["machine"]
    for name, value in result.items():
        if name in _NOT_FIGURES:
            continue
        figures[name] = {**figures.get(name, {}), **value} if name == "growth" else value
        load = [round(machine["load_before"], 1), round(machine["load_after"], 1)]
        stages = [f"growth {size}" for size in value] if name == "growth" else [_STAGE_OF.get(name, "daemon")]
        measured.update({stage: {"day": day, "load": load} for stage in stages})
    if "growth" in figures:
        figures["growth"] = {size: figures["growth"][size] for size in sorted(figures["growth"], key=int)}
    about = {name: value for name, value in machine.items() if not name.startswith(("load", "daemon_env"))}
    ratios = {name: asdict(ratio) for name, ratio in ratios_of(figures).items()}
    return {"machine": about, "measured": measured, "ratios": ratios, "figures": figures}


def draw(growth: Mapping[str, Any]) -> dict[str, str]:
    """The plots, by the names of their files; none where there are fewer than two sizes."""
    if len(growth) < 2:
        return {}
    rows = list(growth.values())
    chunks = [row["chunks"] for row in rows]

    def disk(part: str) -> list[float]:
        return [row["disk"][part] / 1e6 for row in rows]

    found = [row["kinds"][NATURAL] for row in rows]
    queries = {
        "search, p95": [each["search_ms"]["p95"] for each in found],
        "search, p50": [each["search_ms"]["p50"] for each in found],
        "keywords alone, p50": [row["keywords_ms"][NATURAL]["p50"] for row in rows],
        "bare embedding, p50": [each["bare_ms"]["p50"] for each in found],
        "numpy over all vectors, p50": [row["limits"]["numpy_ms"]["p50"] for row in rows],
    }
    index = {
        "wall": [row["index"]["wall_ms"] for row in rows],
        "CPU": [row["index"]["cpu_ms"] for row in rows],
        "FTS5 alone, CPU": [row["index"]["bare_ms"] for row in rows],
    }
    memory = {
        "resident": [row["memory_mb"]["resident"] for row in rows],
        "of its own": [row["memory_mb"]["own"] for row in rows],
    }
    stores = {
        "the text": [row["text_bytes"] / 1e6 for row in rows],
        "ledger": disk("ledger"),
        "LanceDB": disk("vectors"),
        "file without a name": disk("unnamed"),
        "embedding cache": disk("cache"),
    }
    return {
        "growth-queries.svg": draw_growth("A query, in milliseconds", chunks, queries),
        "growth-index.svg": draw_growth("Indexing a chunk, besides embedding, in milliseconds", chunks, index),
        "growth-memory.svg": draw_growth("The daemon's memory, in MB", chunks, memory),
        "growth-disk.svg": draw_growth("On disk, in MB", chunks, stores),
    }
