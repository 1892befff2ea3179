"""``make quality`` as a process, on a benchmark of two memories, with the real model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def write_unit(folder: Path, notes: dict[str, str], queries: dict[str, str]) -> None:
    (folder / "workspace/memory").mkdir(parents=True)
    for name, note in notes.items():
        (folder / f"workspace/memory/{name}.md").write_text(f"{note}\n")
    rows = [
        {
            "id": f"{folder.name}/{name}",
            "query": query,
            "gold": [{"path": f"memory/{name}.md", "start_line": 1, "end_line": 1}],
            "type": folder.name,
            "lex_overlap": 0.0,
        }
        for name, query in queries.items()
    ]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "unit.json").write_text(json.dumps({"now": "2026-01-01"}))


@pytest.fixture
def run(tmp_path: Path, default_model: Path, models_dir: Path) -> Any:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    (cache / "models").symlink_to(models_dir)

    def run(*words: str, data: Path) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "MEMORYD_PATHS__CACHE": str(cache), "QUALITY_DATA": str(data)}
        command = [sys.executable, ROOT / "tools/quality.py", *words]
        return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=110, check=False)

    return run


def test_benchmark_of_two_memories_is_measured_pooled_and_written(tmp_path: Path, run: Any) -> None:
    pets = {"puppy": "Our puppy sleeps in the kitchen.", "ferry": "The ferry leaves at nine."}
    write_unit(tmp_path / "data/locomo/dev/pets", pets, {"puppy": "where does the young dog rest at night"})
    words = {"rent": "Rent went up by fifty euros.", "trip": "We fly to Lisbon in spring."}
    write_unit(tmp_path / "data/locomo/dev/words", words, {"rent": "rent euros", "trip": "Lisbon in spring"})
    out = tmp_path / "docs"
    out.mkdir()
    (out / "quality.md").write_text((ROOT / "docs/quality.md").read_text())

    done = run("--out", str(out), "--check", data=tmp_path / "data")
    assert done.returncode == 0, done.stderr
    result = json.loads((out / "quality.json").read_text())
    bench = result["benches"]["locomo"]
    assert bench["queries"] == 3
    assert bench["line.hit@6"] == bench["variants"]["vector"]["line.hit@6"] == 1.0
    assert bench["variants"]["words"]["line.hit@6"] == 0.6667  # the dog is found by meaning alone
    assert bench["beside_best_leg"]["difference"] == 0
    assert [(bar["measure"], bar["kind"], bar["passed"]) for bar in result["bars"]] == [
        ("line.hit@6", "", True),
        ("line.hit@6", "~overlap-1-low", True),
    ]
    document = (out / "quality.md").read_text()
    assert "| locomo | hit@6 | 3 | 0.925 | **1.000** |" in document
    assert document.startswith("# Search quality")
    assert (out / "quality-legs.svg").read_text().startswith("<svg")
    assert not (out / "quality-curve.svg").exists()  # of another benchmark

    again = run("--bench", "locomo", "--default-only", data=tmp_path / "data")
    assert "| locomo | hit@6 | 3 | 0.925 | **1.000** |" in again.stdout


def test_what_is_not_there_is_named(tmp_path: Path, run: Any) -> None:
    (tmp_path / "data").mkdir()
    for words, data, said in (
        ([], tmp_path / "absent", "there is no such folder"),
        (["--bench", "locomo"], tmp_path / "data", "there is no benchmark locomo"),
        ([], tmp_path / "data", "has no benchmarks"),
    ):
        done = run(*words, data=data)
        assert done.returncode == 2
        assert said in done.stderr
        assert "Traceback" not in done.stderr
