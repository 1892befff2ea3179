"""The memories on which growth is measured, what is kept of a run, and the bars."""

from __future__ import annotations

import importlib
import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memoryd.daemon.engine import Engine
from memoryd.daemon.methods import Methods
from memoryd.daemon.paths import find_paths
from tests.support.fake_embedder import FakeEmbedder

TOOLS = Path(__file__).parents[3] / "tools"
NATURAL, CJK = "natural language", "Chinese, Japanese, Korean"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(TOOLS))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    return load


def measured(
    chunks: int,
    *,
    ratio: float = 2.0,
    p95: float = 15.0,
    keywords: float = 5.0,
    disk: float = 4.0,
    hybrid_s: float = 2.0,
) -> Any:
    times = {"p50": 10.0, "p95": p95}
    return {
        "chunks": chunks,
        "text_bytes": chunks * 1200,
        "kinds": {NATURAL: {"ratio": ratio, "bare_ms": {"p50": 5.0, "p95": 6.0}, "search_ms": times}},
        "keywords_ms": {NATURAL: {"p50": keywords, "p95": 9.0}, CJK: {"p50": 1.0, "p95": 2.0}},
        "index": {"ratio": 3.0, "cpu_ms": 1.0, "wall_ms": 2.0, "bare_ms": 0.3},
        "limits": {"numpy_ms": {"p50": 0.0, "p95": 0.1}},
        "memory_mb": {"resident": 200.0, "own": 150.0},
        "start_s": {"keyword": 0.5, "hybrid": hybrid_s},
        "disk": {"ratio": disk, "ledger": 9e6, "vectors": 5e6, "unnamed": 5e6, "cache": 9e6, "cache_estimated": False},
    }


def test_memory_made_in_bulk_is_what_the_engine_would_have_made(tool: Any, tmp_path: Path) -> None:
    """Nothing is left to do in it, and every row of every store is what the files say."""
    memories, words = tool("bench_memory"), tool("bench_words")
    memory = memories.Memory(tmp_path / "memory", 30)
    for folder in (memory.folder, memory.data, memory.notes):
        memories.ensure_private(folder)
    model = FakeEmbedder()
    models = Fake(words.WordsEmbedder(model))
    (tmp_path / "growth").mkdir()
    memories._make(memory, tmp_path, models, models.embedder)
    facts = memory.facts
    assert facts["complete"]
    assert facts["chunks"] >= 30
    files = list(memory.notes.rglob("*.md"))
    assert facts["files"] == len(files), "what was written beyond the last chunk that was wanted is gone"
    assert facts["text_bytes"] == sum(file.stat().st_size for file in files)
    config = memory.config(tmp_path)
    engine = Engine(config, find_paths(config, os.environ), models)
    known = list(model.texts)
    try:
        engine.start()
        engine.queue.wait_until(engine.is_current)
        with engine.database.read() as sql:
            assert sql.execute("SELECT count(*) FROM chunks").fetchone() == (facts["chunks"],)
        proof = Methods(engine, {}).verify({})
        assert proof["in_sync"], proof["drift"][:3]
        assert proof["vectors"] == facts["passages"] > 30
        assert model.texts == known, "every vector was there"
    finally:
        engine.stop(timeout=5)


class Fake:
    """The one embedder, whichever is asked for."""

    off = None
    recipe = "fake"

    def __init__(self, embedder: Any) -> None:
        from memoryd.jobs.meaning import Choice

        self.embedder = embedder
        self.choice = Choice("local", "for the test")

    def load(self, _progress: Any) -> Any:
        return self.embedder

    def former(self, _recipe: str) -> Any:
        return self


def test_bars_are_those_of_the_size(tool: Any) -> None:
    bars = tool("bench_growth").growth_bars
    assert len(bars({"1000": measured(1028)})) == 1, "of a small memory only the disk is judged"
    assert all(bars({"10000": measured(10_049), "100000": measured(100_016)}).values())

    def missed(size: int, **figures: float) -> list[str]:
        return [bar for bar, held in bars({str(size): measured(size, **figures)}).items() if not held]

    assert missed(10_000, ratio=3.1) == ["search p50 ≤ 3 × a bare query embedding in 10,000 chunks"]
    assert missed(100_000, ratio=4.9) == []
    assert missed(1_000_000, ratio=10.1) == ["search p50 ≤ 10 × a bare query embedding in 1,000,000 chunks"]
    assert missed(10_000, p95=20.1) == ["search p95 ≤ 2 × p50 in 10,000 chunks"]
    assert missed(100_000, keywords=15.1) == ["keywords alone, natural language: p50 ≤ 15 ms in 100,000 chunks"]
    assert missed(10_000, keywords=15.1) == []
    assert missed(10_000, hybrid_s=3.1) == ["start → words and meaning ≤ 3 s in 10,000 chunks"]
    assert missed(1_000, disk=6.1) == ["disk ≤ 6 × the text in 1,000 chunks"]


def test_page_has_the_tables_of_the_run_that_is_kept(tool: Any) -> None:
    report, docs = tool("bench_report"), TOOLS.parent / "docs"
    page = (docs / "performance.md").read_text(encoding="utf-8").splitlines()
    growth = json.loads((docs / "bench/baseline.json").read_text())["figures"]["growth"]
    for table in report.growth_tables(growth):
        for row in table:
            assert report.format_row(row) in page


def test_run_is_kept_beside_what_was_kept_before(tool: Any, tmp_path: Path) -> None:
    baseline = tool("bench_baseline")
    machine = {**baseline.describe_machine(), "load_before": 0.5, "load_after": 1.0, "daemon_env": {}}
    baseline.keep_result({"machine": machine, "bars": {}, "growth": {"10000": measured(10_049)}}, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["baseline.json"], "one size makes no curve"
    baseline.keep_result({"machine": machine, "growth": {"1000": measured(1028, ratio=1.5)}, "load": LOAD}, tmp_path)
    kept = json.loads((tmp_path / "baseline.json").read_text())
    assert list(kept["figures"]["growth"]) == ["1000", "10000"]
    assert set(kept["measured"]) == {"growth 1000", "growth 10000", "load"}
    assert kept["machine"]["cores"] >= 1
    assert "load_before" not in kept["machine"]
    ratios = baseline.read_baseline(tmp_path)
    assert ratios["growth 1,000: search p50 over a bare embedding"].value == 1.5
    assert ratios["load: p95 at a rate while indexing over idle"].value == 1.9
    assert len(list(tmp_path.glob("growth-*.svg"))) == 4


LOAD = {"paced": {"ratio": 1.9}, "flat_out": {"ratio": 1.0}}


def test_plot_puts_each_value_in_its_decade_and_leaves_out_what_is_nothing(tool: Any) -> None:
    drawn = tool("bench_plot").draw_growth(
        "A query", [1000, 10_000, 1_000_000], {"one": [1, 10, 100], "two": [0, 1, 1]}
    )
    root = ET.fromstring(drawn)
    lines = [part.get("points", "").split() for part in root.iter() if part.tag.endswith("polyline")]
    assert [len(points) for points in lines] == [3, 2]
    across, up = zip(*((float(number) for number in point.split(",")) for point in lines[0]), strict=True)
    assert across[2] - across[1] == pytest.approx(2 * (across[1] - across[0]), abs=0.2)
    assert up[0] - up[1] == pytest.approx(up[1] - up[2], abs=0.2)
    assert up[0] > up[1]
    assert lines[1][0].split(",")[1] == lines[0][0].split(",")[1], "1 is 1 in either line"
