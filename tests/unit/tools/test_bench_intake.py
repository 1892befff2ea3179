"""The benchmark of indexing besides embedding, on a memory of a few notes."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[3] / "tools"


def test_stage_measures_the_real_engine_and_judges_by_the_bars(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    bench, report = importlib.import_module("bench_intake"), importlib.import_module("bench_report")
    intake = bench.measure_intake(files=40, chunks=30)
    assert intake["burst"]["texts"] == 2 + 1  # every twentieth, and all others' one text
    assert 1 <= intake["change"]["texts"] <= bench.BARS["change_texts"]
    assert intake["rebuild"]["vectors"] > 30
    assert all(intake[part][raw] > 0 for part, raw in bench.RAW.items())
    bars = bench.intake_bars(intake)
    assert len(bars) == 4
    slow = {**intake, "rescan": {**intake["rescan"], "seconds": 1.5}}
    assert [bar for bar, held in bench.intake_bars(slow).items() if not held and bars[bar]] == [
        "rescan of 40 unchanged files < 1 s"
    ]
    machine = {"cores": 2, "load_before": 0.0, "load_after": 0.0}
    report.print_report({"machine": machine, "intake": intake, "bars": bars})
    printed = capsys.readouterr().out
    assert "INDEXING BESIDES EMBEDDING" in printed
    assert printed.count("✓") + printed.count("✗") == len(bars)
