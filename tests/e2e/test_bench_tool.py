"""The larger memories and the many clients of ``make bench``, few and small, as a process with the real model."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
STAGES = {"embed", "nearest", "vector", "rank", "all else", "words, beside", "trigram, beside"}

Bench = Callable[..., dict[str, Any]]


@pytest.fixture
def cache(tmp_path: Path, default_model: Path, models_dir: Path) -> Path:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    (cache / "models").symlink_to(models_dir)
    return cache


@pytest.fixture
def bench(tmp_path: Path, cache: Path) -> Bench:
    def run(*words: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, ROOT / "tools/bench.py", *words, "--json", str(tmp_path / "out.json")],
            env={**os.environ, "MEMORYD_PATHS__CACHE": str(cache)},
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        result: dict[str, Any] = json.loads((tmp_path / "out.json").read_text())
        return result

    return run


def test_growth_is_measured_on_a_real_daemon_and_the_memory_is_kept(bench: Bench, cache: Path) -> None:
    result = bench("--growth-only", "--growth-chunks", "40", "--queries", "8", "--growth-idle", "0")
    (measured,) = result["growth"].values()
    assert measured["chunks"] >= 40
    for kind in measured["kinds"].values():
        assert set(kind["stages_ms"]) == STAGES
        assert min(kind["search_ms"]["p50"], kind["bare_ms"]["p50"], kind["cpu_ms"]) > 0
    assert measured["index"]["cpu_ms"] > measured["index"]["bare_ms"] > 0
    assert min(measured["disk"][store] for store in ("ledger", "vectors", "cache")) > 0
    assert not measured["disk"]["cache_estimated"]
    assert measured["limits"]["vectors"] == measured["passages"]
    (folder,) = (path for path in (cache / "growth").iterdir() if path.is_dir())
    made = json.loads((folder / "made.json").read_text())
    assert (made["complete"], made["chunks"]) == (True, measured["chunks"])
    with closing(sqlite3.connect(folder / "data/ledger.db")) as sql:
        held = sql.execute("SELECT count(*) FROM chunks").fetchone()
    assert held == (made["chunks"],), "what was added to measure with is gone again"
    assert len(list((folder / "notes").rglob("*.md"))) == made["files"]


def test_daemon_with_nothing_to_do_is_measured_by_thread_and_its_model_asleep(bench: Bench) -> None:
    result = bench("--idle-only", "--idle-seconds", "6", "--idle-chunks", "10", "--idle-settle", "3")
    idle = result["idle"]
    assert idle["wakeups_a_minute"] == pytest.approx(
        sum(thread["wakeups_a_minute"] for thread in idle["threads"].values())
    )
    assert idle["wakeups_a_minute"] < 12 * 60  # nothing polls several times a second
    assert result["sleep"]["asleep_mb"] < result["sleep"]["awake_mb"]
    assert 0 < result["sleep"]["wake_ms"] <= result["sleep"]["first_search_ms"]
    assert list(result["bars"].values()) == [idle["cpu_percent"] < 0.05, idle["others"] == 0]


def test_crowd_gets_its_own_answers_while_everything_is_indexed_again(bench: Bench) -> None:
    result = bench(
        "--load-only", "--connections", "50", "--load-chunks", "20", "--load-seconds", "2", "--load-rate", "10"
    )
    for pace in ("paced", "flat_out"):
        for phase in ("idle", "indexing"):
            heard = result["load"][pace][phase]
            assert heard["searches"] > 0
            assert (heard["errors"], heard["crossed"], heard["lost"]) == (0, 0, 0), heard
    assert result["load"]["flat_out"]["idle"]["searches"] >= 50
    assert result["idle_connections"]["connections"] == 2000
    assert result["idle_connections"]["mb"] < 100
    assert len(result["bars"]) == 4
