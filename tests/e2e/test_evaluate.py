"""``memoryd eval`` as a process, with the real model."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.daemon import Machine

GOLD = {"path": "memory/pets.md", "start_line": 1, "end_line": 1}


def write_queries(folder: Path, *queries: object) -> Path:
    file = folder / "queries.jsonl"
    file.write_text("".join(json.dumps(query) + "\n" for query in queries))
    return file


def test_eval_measures_the_real_search_and_keeps_out_of_the_daemons_way(machine: Machine, tmp_path: Path) -> None:
    machine.write("memory/pets.md", "Our puppy sleeps in the kitchen.\n")
    machine.write("memory/boats.md", "The ferry leaves at nine.\n")
    queries = write_queries(
        tmp_path,
        {"id": "words", "query": "puppy kitchen", "gold": [GOLD]},
        {"id": "meaning", "query": "where does the young dog rest at night", "gold": [GOLD]},
    )
    options = ["eval", "--workspace", str(machine.root), "--queries", str(queries), "--now", "2026-01-01"]
    with machine.daemon() as daemon:  # a data folder of its own: both run at once
        daemon.settle()
        report = machine.json(*options, "--out", str(tmp_path / "results.jsonl"))
        assert daemon.found("puppy") == ["memory/pets.md"]
    assert report["queries"] == 2
    assert report["line.hit@1"] == report["doc.ndcg@10"] == 1.0
    assert report["latency_ms"]["p50"] > 0
    results = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert [row["id"] for row in results] == ["words", "meaning"]
    assert results[0]["results"][0] == GOLD

    done = machine.run(*options, "--set", "search.weights.vector=0", "--set", "search.weights.words=0")
    assert done.returncode == 0
    assert "hit@6" in done.stdout


def test_eval_names_what_is_wrong_with_its_input(machine: Machine, tmp_path: Path) -> None:
    machine.write("memory/pets.md", "Our puppy.\n")
    options = ["eval", "--workspace", str(machine.root), "--queries"]
    broken = write_queries(tmp_path, {"id": 1, "query": "x", "gold": [GOLD]}, {"id": 2, "query": "no gold"})
    good = tmp_path / "good.jsonl"
    good.write_text(json.dumps({"id": 1, "query": "x", "gold": [GOLD]}) + "\n")
    for words, said in (
        ([*options, str(broken)], "queries.jsonl:2 is not a query"),
        ([*options, str(tmp_path / "absent.jsonl")], "cannot be read"),
        ([*options, str(good), "--set", "search.rrfk=3"], "did you mean search.rrf_k?"),
        ([*options, str(good), "--set", "search.rrf_k"], "no value"),
    ):
        done = machine.run(*words)
        assert done.returncode == 2
        assert said in done.stderr
        assert "Traceback" not in done.stderr
