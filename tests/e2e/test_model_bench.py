"""Two real models side by side, on notes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.daemon import Machine
from tests.support.other_models import BGE_SMALL, provide

NOTES = Path(__file__).parents[1] / "quality/workspace/memory"


def test_two_models_on_ones_own_notes(machine: Machine, other_models: Path) -> None:
    few = machine.run("model", "bench", str(provide(BGE_SMALL, other_models)))
    assert few.returncode != 0
    assert "question" in few.stderr
    for note in sorted(NOTES.glob("*.md"))[:25]:
        machine.write(f"memory/{note.name}", note.read_text())
    done = machine.run("model", "bench", str(provide(BGE_SMALL, other_models)), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    one, other = told["models"]
    assert (one["model"], one["dimension"]) == ("all-minilm-l6-v2", 384)
    assert other["model"].endswith(BGE_SMALL.file)
    for model in told["models"]:
        assert 0.02 < model["found_first"] <= model["found_in_ten"] <= 1, "both are real models"
        assert model["passages_per_s"] > 0
        assert model["query_ms"] > 0
    assert one["passages_per_s"] > other["passages_per_s"], "it is half as deep"
    low, high = told["difference"]["ci95"]
    assert low <= told["difference"]["found_first"] <= high
    assert not machine.data.exists(), "nothing is indexed"
