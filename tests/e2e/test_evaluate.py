"""``memoryd eval`` as a process, with the real model."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.daemon import Machine

GOLD = {"path": "memory/pets.md", "start_line": 1, "end_line": 1}


@pytest.fixture(autouse=True)
def cache(machine: Machine, models_dir: Path) -> Path:
    """A cache folder of the test's own, with the models that are there: eval keeps its indexes in it."""
    folder = machine.folder / "own-cache"
    folder.mkdir(mode=0o700)
    (folder / "models").symlink_to(models_dir)
    machine.env["MEMORYD_PATHS__CACHE"] = str(folder)
    return folder


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


def test_eval_embeds_a_text_once_for_all_workspaces(machine: Machine, tmp_path: Path, cache: Path) -> None:
    machine.write("memory/pets.md", "Our puppy sleeps in the kitchen.\n")
    shutil.copytree(machine.root, tmp_path / "copy")
    queries = write_queries(tmp_path, {"id": 1, "query": "puppy", "gold": [GOLD]})

    def embeddings() -> int:
        with closing(sqlite3.connect(cache / "eval/embeddings.db")) as sql:
            count: int = sql.execute("SELECT count(*) FROM embeddings").fetchone()[0]
        return count

    for folder in (machine.root, tmp_path / "copy"):
        report = machine.json("eval", "--workspace", str(folder), "--queries", str(queries))
        assert report["line.hit@1"] == 1.0
        assert embeddings() == 1
    assert [file.parent for file in cache.rglob("embeddings.db")] == [cache / "eval"]


def test_eval_tells_kinds_of_queries_apart(machine: Machine, tmp_path: Path) -> None:
    machine.write("memory/pets.md", "Our puppy sleeps in the kitchen.\n")
    queries = write_queries(
        tmp_path,
        {"id": 1, "query": "puppy", "gold": [GOLD], "type": "known", "lex_overlap": 1.0},
        {"id": 2, "query": "puppy", "gold": [GOLD | {"path": "memory/gone.md"}], "type": "absent"},
    )
    options = ["eval", "--workspace", str(machine.root), "--queries", str(queries)]
    kinds = machine.json(*options)["by_type"]
    assert {kind: row["line.hit@6"] for kind, row in kinds.items()} == {"absent": 0, "known": 1, "~overlap-3-high": 1}
    assert "~overlap-3-high" in machine.run(*options, "--by-type").stdout


NOTES = {
    "puppy": ("Our puppy sleeps in the kitchen.", "where does the young dog rest at night"),
    "boat": ("The ferry leaves at nine.", "when does the ship depart"),
    "doctor": ("The physician moved the appointment to Monday.", "when do I see my doctor"),
    "car": ("The automobile needs new tyres.", "what must be bought for the vehicle"),
    "money": ("Rent went up by fifty euros.", "how much more expensive is my flat"),
    "food": ("Grandmother's lasagna wants two hours in the oven.", "how long to cook the pasta bake"),
    "trip": ("We fly to Lisbon in spring.", "where are we going on holiday"),
    "school": ("Mia's teacher praised her essay.", "how does my daughter do in class"),
}


def test_compare_tells_what_the_vectors_are_worth_and_which_queries_they_answer(
    machine: Machine, tmp_path: Path
) -> None:
    for name, (note, _) in NOTES.items():
        machine.write(f"memory/{name}.md", f"{note}\n")
    queries = write_queries(
        tmp_path,
        *(
            {"id": name, "query": query, "gold": [{"path": f"memory/{name}.md", "start_line": 1, "end_line": 1}]}
            for name, (_, query) in NOTES.items()
        ),
    )
    with_vectors, without, chunks = (tmp_path / name for name in ("a.toml", "b.toml", "c.toml"))
    with_vectors.write_text("[search]\n")
    without.write_text("[search.weights]\nvector = 0\n")
    chunks.write_text("[index]\nchunk_tokens = 300\n")
    options = ["eval", "--workspace", str(machine.root), "--queries", str(queries), "--compare"]

    report = machine.json(*options, str(without), str(with_vectors))
    assert report["one_index"] is True
    hit = report["measures"]["line.hit@6"]
    assert hit["b"] == 1.0
    assert hit["difference"] == pytest.approx(hit["b"] - hit["a"])
    assert hit["verdict"] == "better"
    assert 0 < hit["ci95"][0] <= hit["difference"] <= hit["ci95"][1]
    gained = {change["id"]: change for change in report["changed"] if change["outcome"] == "gained"}
    assert "boat" in gained
    assert gained["boat"]["query"] == "when does the ship depart"
    assert (gained["boat"]["a"], gained["boat"]["b"] <= 6) == (None, True)

    shown = machine.run(*options, str(with_vectors), str(without)).stdout
    assert "worse" in shown
    assert "lost" in shown

    same = machine.json(*options, str(with_vectors), str(without), "--set", "search.weights.vector=0")
    assert same["changed"] == []  # --set goes over both files

    apart = machine.json(*options, str(with_vectors), str(chunks))
    assert apart["one_index"] is False
    assert apart["measures"]["line.hit@6"]["verdict"] == "no difference that can be told"

    done = machine.run(*options, str(with_vectors), str(tmp_path / "absent.toml"))
    assert done.returncode == 2
    assert "there is no such file" in done.stderr
