"""The large memory and the many clients of ``make bench``, few and small, as a process with the real model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
STAGES = {"words", "trigram", "vector", "rank", "all else", "embed, beside", "nearest, beside"}

Bench = Callable[..., dict[str, Any]]


@pytest.fixture
def cache(tmp_path: Path, default_model: Path, models_dir: Path) -> Path:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    (cache / "models").symlink_to(models_dir)
    return cache


@pytest.fixture
def bench(tmp_path: Path, cache: Path) -> Bench:
    def run(chunks: int, *load: str) -> dict[str, Any]:
        large = ["--large-only", "--large-chunks", str(chunks), "--queries", "8"]
        words = [*(load or large), "--json", str(tmp_path / "out.json")]
        done = subprocess.run(
            [sys.executable, ROOT / "tools/bench.py", *words],
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


def test_every_kind_of_query_is_measured_beside_its_bare_embedding(bench: Bench) -> None:
    result = bench(40)
    assert result["large"]["chunks"] >= 40
    kinds = result["large"]["kinds"]
    assert len(kinds) == 6
    for measured in kinds.values():
        assert set(measured["stages_ms"]) == STAGES
        assert min(measured["search_ms"]["p50"], measured["bare_ms"]["p50"], measured["cpu_ratio"]) > 0
    (bar,) = result["bars"]
    assert f"{result['large']['chunks']} chunks" in bar
    assert result["bars"][bar] == (kinds["natural language"]["ratio"] <= 10)


def test_memory_is_kept_for_the_next_run_and_made_anew_for_another_size(bench: Bench, cache: Path) -> None:
    def notes() -> tuple[str, int]:
        (folder,) = (cache / "bench").iterdir()  # one at a time
        return folder.name, (folder / "notes").stat().st_ino

    bench(20)
    first = notes()
    bench(20)
    assert notes() == first
    bench(30)
    assert notes() != first


def test_daemon_with_nothing_to_do_is_measured_by_thread_and_its_model_asleep(bench: Bench) -> None:
    result = bench(0, "--idle-only", "--idle-seconds", "6", "--idle-chunks", "10")
    idle = result["idle"]
    assert idle["wakeups_a_minute"] == pytest.approx(
        sum(thread["wakeups_a_minute"] for thread in idle["threads"].values())
    )
    assert idle["wakeups_a_minute"] < 12 * 60  # nothing polls several times a second
    assert result["sleep"]["asleep_mb"] < result["sleep"]["awake_mb"]
    assert 0 < result["sleep"]["wake_ms"] <= result["sleep"]["first_search_ms"]
    (bar,) = result["bars"]
    assert result["bars"][bar] == (idle["cpu_percent"] < 0.05)


def test_crowd_gets_its_own_answers_while_everything_is_indexed_again(bench: Bench) -> None:
    result = bench(
        0, "--load-only", "--connections", "50", "--load-chunks", "20", "--load-seconds", "2", "--load-rate", "10"
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
