"""``make quality``: the benchmarks on disk, and how their units are pooled. The figures were worked out by hand."""

from __future__ import annotations

import json
import math
import tarfile
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from memoryd.daemon.evaluation import Asked, Query, read_queries
from memoryd.store.search.metrics import Span
from tools.quality_units import Pool, Unit, find_units, unpack

ANSWER, NOISE = Span("memory/a.md", 3, 3), Span("memory/z.md", 1, 9)


def write_unit(folder: Path, queries: int, **facts: Any) -> None:
    (folder / "workspace/memory").mkdir(parents=True)
    (folder / "unit.json").write_text(json.dumps(facts))
    gold = [{"path": ANSWER.path, "start_line": ANSWER.start_line, "end_line": ANSWER.end_line}]
    rows = [
        {"id": f"{folder.name}/{number}", "query": "x", "gold": gold, "type": folder.name} for number in range(queries)
    ]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def answer(rank: int | None, *, doubted: bool = False) -> Asked:
    """A result list with the answer at a rank."""
    hits = [NOISE] * 9
    if rank is not None:
        hits.insert(rank - 1, ANSWER)
    return Asked(hits, 30.0, 20.0, {"embed": 10.0}, doubted)


def test_units_are_found_with_the_day_they_were_made(tmp_path: Path) -> None:
    write_unit(tmp_path / "one/dev", 1, now="2023-10-23")
    write_unit(tmp_path / "many/dev/b", 1)
    write_unit(tmp_path / "many/dev/a", 1, now=None)
    write_unit(tmp_path / "other/held", 1)
    (tmp_path / "corpus/workspace").mkdir(parents=True)
    assert find_units(tmp_path) == {
        "many": [Unit(tmp_path / f"many/dev/{name}/workspace", tmp_path / f"many/dev/{name}/queries.jsonl", None)
                 for name in "ab"],
        "one": [Unit(tmp_path / "one/dev/workspace", tmp_path / "one/dev/queries.jsonl", date(2023, 10, 23))],
    }  # fmt: skip


def pooled(folder: Path) -> Pool:
    """Two units, one query in the first and three in the second."""
    write_unit(folder / "bench/dev/small", 1)
    write_unit(folder / "bench/dev/wide", 3)
    pool = Pool()
    ranks = {"small": {"full": [1], "leg": [None]}, "wide": {"full": [7, None, 2], "leg": [6, 1, 3]}}
    for unit in find_units(folder)["bench"]:
        asked = ranks[unit.queries.parent.name]
        pool.add(read_queries(unit.queries), {name: [answer(rank) for rank in row] for name, row in asked.items()})
    return pool


def test_units_are_pooled_query_by_query(tmp_path: Path) -> None:
    report = pooled(tmp_path).summary("full")
    assert report["queries"] == 4
    assert [report[f"line.hit@{cut}"] for cut in (1, 5, 6, 10)] == [0.25, 0.5, 0.5, 0.75]  # by units: 0.667 at 6
    assert report["line.recall@10"] == 0.75
    assert report["line.mrr@10"] == pytest.approx((1 + 1 / 7 + 1 / 2) / 4, abs=5e-5)
    assert report["line.ndcg@10"] == pytest.approx((1 + 1 / math.log2(8) + 1 / math.log2(3)) / 4, abs=5e-5)
    assert report["doc.hit@1"] == 0.25
    assert report["doc.hit@5"] == 0.75  # nine hits of one file are one document
    assert report["ci95_line.hit@6"] == [0.15, 0.85]
    assert report["lines_per_result"] == pytest.approx((3 * (9 * 9 + 1) / 10 + 9) / 4, abs=5e-5)
    assert {kind: row["line.hit@6"] for kind, row in report["by_type"].items()} == {"small": 1.0, "wide": 0.3333}
    assert report["search_per_embedding"] == 3.0
    assert "latency_ms" not in report


def test_each_setting_has_its_own_figures_and_curve(tmp_path: Path) -> None:
    variants = pooled(tmp_path).summary("full")["variants"]
    assert variants["full"]["curve"] == [0.25, 0.5, 0.5, 0.5, 0.5, 0.5, 0.75, 0.75, 0.75, 0.75]
    assert variants["leg"]["line.hit@6"] == 0.75


def test_difference_of_two_settings_is_that_of_the_same_queries(tmp_path: Path) -> None:
    assert pooled(tmp_path).difference("line.hit@6", "leg", "full") == {
        "beside": "leg",
        "difference": -0.25,
        "ci95": [-1.0, 0.5],  # four draws of +1, -1, -1, 0: -1 has 6.3 % of them, 0.75 and more 2 %
        "verdict": "no difference that can be told",
    }


def test_a_figure_can_be_of_one_kind_of_queries_with_an_interval_that_fits_its_values() -> None:
    queries = [Query(number, "x", (ANSWER,), ("odd" if number % 2 else "even",)) for number in range(8)]
    pool = Pool()
    pool.add(queries, {"full": [answer(1 if number % 2 else 2) for number in range(8)]})
    assert pool.value("line.hit@1", "", "full") == {"queries": 8, "measured": 0.5, "ci95": [0.2152, 0.7848]}
    assert pool.value("line.hit@1", "odd", "full")["measured"] == 1.0
    graded = pool.value("line.mrr@10", "", "full")
    assert graded["measured"] == 0.75
    assert 0.5 < graded["ci95"][0] < 0.75 < graded["ci95"][1] < 1


def test_archive_is_unpacked_once_and_again_when_it_changed(tmp_path: Path) -> None:
    archive, folder = tmp_path / "dev.tgz", tmp_path / "cache"

    def pack(queries: int) -> None:
        write_unit(tmp_path / f"packed-{queries}/dev/bench/dev", queries)
        (tmp_path / f"packed-{queries}/dev/corpus-docs").mkdir()
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(tmp_path / f"packed-{queries}/dev", "dev")

    pack(1)
    data = unpack(archive, folder)
    assert list(find_units(data)) == ["bench"]
    assert not (data / "corpus-docs").exists()
    (data / "bench/kept").touch()
    assert unpack(archive, folder) == data
    assert (data / "bench/kept").exists()
    pack(2)
    assert len(read_queries(find_units(unpack(archive, folder))["bench"][0].queries)) == 2


def test_silence_and_doubt_are_told_of_own_and_of_strangers_questions(tmp_path: Path) -> None:
    write_unit(tmp_path / "one/dev", 2)
    (unit,) = find_units(tmp_path)["one"]
    pool = Pool()
    pool.add(read_queries(unit.queries), {"full": [answer(1), answer(2, doubted=True)]})
    pool.strange = [answer(None, doubted=True), answer(None), answer(None), Asked([], 1.0, 1.0, {})]
    silence = pool.summary("full")["silence"]
    assert (silence["own"], silence["own_doubted"]) == (0.0, 0.5)
    assert (silence["strange"], silence["strange_doubted"], silence["strangers"]) == (0.25, 0.25, 4)
