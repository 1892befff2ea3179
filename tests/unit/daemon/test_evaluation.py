"""Queries with known answers: how they are read, and how what came back is summed up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memoryd.daemon.config import Config, Locations, Workspace
from memoryd.daemon.evaluation import Asked, Query, read_queries, set_apart, summarise
from memoryd.store.errors import InvalidParams
from memoryd.store.search.metrics import Span


def read(folder: Path, *rows: dict[str, Any]) -> list[Query]:
    file = folder / "queries.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    return read_queries(file)


def test_a_query_is_read_with_its_grades_its_type_and_its_slice(tmp_path: Path) -> None:
    gold = [{"path": "./memory/a.md", "start_line": 2, "end_line": 3, "grade": 4}]
    plain, labelled = read(
        tmp_path,
        {"id": 7, "query": "x", "gold": []},
        {"id": "q", "query": "y", "gold": gold, "type": "temporal", "lex_overlap": 0.2, "answer": "ignored"},
    )
    assert plain == Query(7, "x", (), ("?",))
    assert labelled == Query("q", "y", (Span("memory/a.md", 2, 3, 4.0),), ("temporal", "~overlap-1-low"))


def test_what_is_not_a_query_is_named_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidParams, match=r"queries.jsonl:2 is not a query: KeyError 'gold'"):
        read(tmp_path, {"id": 1, "query": "x", "gold": []}, {"id": 2, "query": "x"})
    with pytest.raises(InvalidParams, match="has no queries"):
        read(tmp_path)


def test_summary_is_over_all_queries_and_over_each_kind() -> None:
    here, there = Span("a.md", 1, 1), Span("b.md", 1, 1)
    queries = [
        Query(1, "x", (here,), ("easy", "~overlap-3-high")),
        Query(2, "y", (here,), ("hard",)),
        Query(3, "z", (here,), ("hard",)),
        Query(4, "-", (here,), ("hard",)),
    ]
    answers = [[here, there], [there, here], [there], []]
    report = summarise(queries, [Asked(hits, 10.0 * place, 20.0 * place, {}) for place, hits in enumerate(answers)])
    assert (report["queries"], report["empty"]) == (4, 1)
    assert (report["line.hit@1"], report["line.hit@6"], report["line.mrr@10"]) == (0.25, 0.5, 0.375)
    assert report["ci95_line.hit@6"] == [0.15, 0.85]
    assert report["latency_ms"] == {"p50": 10.0, "p95": 30.0, "p99": 30.0}
    assert report["cpu_ms"] == {"p50": 20.0, "p95": 60.0, "p99": 60.0}
    assert list(report["by_type"]) == ["easy", "hard", "~overlap-3-high"]
    assert report["by_type"]["hard"]["queries"] == 3
    assert report["by_type"]["hard"]["line.hit@6"] == 0.3333


def test_indexes_are_set_apart_by_workspace_and_slot_and_share_their_embeddings(tmp_path: Path) -> None:
    def apart(folder: str, slot: str = "") -> tuple[Path, Path]:
        config = Config((Workspace(tmp_path / folder, folder),), paths=Locations("/own/data", str(tmp_path), "/s"))
        config, paths = set_apart(config, {}, slot)
        assert config.paths.data == str(paths.data_dir)
        return paths.data_dir, paths.embeddings

    folders, embeddings = zip(*(apart("one"), apart("one"), apart("one", "-b"), apart("two")), strict=True)
    assert folders[0] == folders[1]
    assert len(set(folders)) == 3
    assert {folder.parent for folder in folders} == {tmp_path / "eval"}
    assert set(embeddings) == {tmp_path / "eval/embeddings.db"}
