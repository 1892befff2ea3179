"""``memoryd search --rerank`` as a process, with a real cross-encoder and without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.daemon import Machine
from tests.support.other_models import CROSS_ENCODER, provide, provide_files
from tests.support.waiting import eventually

QUERY = "how long can the drone stay in the air"


def write_notes(machine: Machine) -> None:
    machine.write("memory/drone.md", "The drone lands after about 25 minutes, when its battery is empty.\n")
    machine.write("memory/air.md", "How long the air in the cellar stays damp depends on the drone of the fan.\n")
    machine.write("memory/boat.md", "The ferry leaves at nine.\n")


def reranked(machine: Machine, *options: str) -> dict[str, Any]:
    """The answer once the model is loaded, which no query waits for."""
    found: dict[str, Any] = {}

    def is_used() -> bool:
        found.update(machine.json("search", QUERY, "--explain", *options))
        return bool(found["rerank"]["used"])

    eventually(is_used, what="the reranker is loaded")
    return found


def test_passage_that_answers_comes_first_and_says_why(machine: Machine, other_models: Path) -> None:
    write_notes(machine)
    for model in (provide_files(CROSS_ENCODER, other_models) / "model.onnx", provide(CROSS_ENCODER, other_models)):
        machine.env = {"MEMORYD_SEARCH__RERANK__MODEL": str(model), "MEMORYD_SEARCH__RERANK__BUDGET_MS": "20000"}
        with machine.daemon() as daemon:
            daemon.settle()
            assert machine.json("search", QUERY)["rerank"] is None
            answer = reranked(machine, "--rerank")
            best = answer["results"][0]
            assert best["path"] == "memory/drone.md"
            assert best["explain"]["rerank"]["confidence"] > answer["results"][1]["explain"]["rerank"]["confidence"]
            assert 0 < answer["rerank"]["read"] <= answer["rerank"]["of"]
            assert answer["timings_ms"]["rerank"] > 0
            assert "reranker" in machine.run("search", QUERY, "--rerank", "--explain").stdout
            assert daemon.events("query_done")[-1]["reranked"] > 0
            other = machine.json("search", "渡轮几点出发", "--rerank")["rerank"]
            assert "does not read" in other["reason"]


def test_for_every_query_if_configured_unless_one_says_no(machine: Machine, other_models: Path) -> None:
    write_notes(machine)
    machine.env = {
        "MEMORYD_SEARCH__RERANK__ENABLED": "true",
        "MEMORYD_SEARCH__RERANK__MODEL": str(provide_files(CROSS_ENCODER, other_models) / "model.onnx"),
        "MEMORYD_SEARCH__RERANK__BUDGET_MS": "20000",
    }
    with machine.daemon() as daemon:
        daemon.settle()
        assert reranked(machine)["rerank"]["used"]
        assert machine.json("search", QUERY, "--no-rerank")["rerank"] is None
        assert machine.json("search", QUERY, "--set", "rerank.weight=0")["results"]
        refused = machine.run("search", QUERY, "--set", "rerank.model=other")
        assert "restart" in refused.stderr


def test_without_its_file_queries_are_answered_and_the_remedy_is_told(machine: Machine, tmp_path: Path) -> None:
    write_notes(machine)
    machine.env = {"MEMORYD_SEARCH__RERANK__MODEL": str(tmp_path / "gone.onnx"), "MEMORYD_EMBEDDER__AUTO_INSTALL": "0"}
    with machine.daemon() as daemon:
        daemon.settle()

        def is_told() -> bool:
            found = machine.run("search", QUERY, "--rerank")
            assert "memory/drone.md" in found.stdout
            return "Not reranked: The reranker" in found.stderr and "model install" in found.stderr

        eventually(is_told, what="the reason is known")
