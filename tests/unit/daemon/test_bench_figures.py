"""What ``memoryd bench`` asks, and how it adds up the answers."""

from __future__ import annotations

from random import Random

from memoryd.daemon.commands.bench_figures import Sample, draw_queries, spread, summarise

TEXT = "The harbour office opens at nine, and the ferry leaves for the island before noon."


def sample(whole: float, embedding: float | None = 5.0, degraded: str | None = None) -> Sample:
    stages = {"words": 1.0, "embed": whole / 2, "rank": 2.0}
    return Sample(whole, whole - 0.5, stages, embedding, 4.0, degraded)


def test_queries_are_runs_of_words_that_stand_in_the_notes() -> None:
    queries = draw_queries([TEXT, ""], 20, Random(1))
    assert len(queries) == 20
    plain = TEXT.replace(",", "").replace(".", "")
    for query in queries:
        assert 3 <= len(query.split()) <= 8
        assert query in plain
    assert draw_queries([TEXT], 20, Random(1)) == draw_queries([TEXT], 20, Random(1))
    assert draw_queries([TEXT], 20, Random(2)) != queries


def test_of_a_script_without_spaces_parts_are_taken() -> None:
    sentence = "今天我们讨论数据库迁移计划服务器备份已经完成需要检查日志部署流水线"
    for query in draw_queries([sentence], 10, Random(3)):
        assert len(query) == 6
        assert query in sentence


def test_without_words_nothing_is_asked() -> None:
    assert draw_queries(["", "--- !!! ---"], 5, Random(1)) == []
    assert draw_queries([], 5, Random(1)) == []


def test_percentiles_are_times_that_were_measured() -> None:
    assert spread([float(number) for number in range(1, 101)]) == {"p50": 50.0, "p95": 95.0}
    assert spread([7.0]) == {"p50": 7.0, "p95": 7.0}


def test_search_is_told_beside_the_bare_embedding() -> None:
    told = summarise([sample(10.0), sample(20.0), sample(30.0)])
    assert told["queries"] == 3
    assert told["search_ms"] == {"p50": 20.0, "p95": 30.0}
    assert told["ratio"] == 4.0
    assert told["socket_ms"]["p50"] == 0.5
    assert list(told["stages_ms"]) == ["embed", "rank", "words, beside the others"]
    assert (told["degraded"], told["reason"]) == (0, None)


def test_without_an_embedder_there_is_nothing_to_compare_with() -> None:
    told = summarise([sample(10.0, None, "the model is missing"), sample(12.0)])
    assert told["embedding_ms"] == {"p50": 5.0, "p95": 5.0}
    assert (told["degraded"], told["reason"]) == (1, "the model is missing")
    told = summarise([sample(10.0, None)])
    assert (told["embedding_ms"], told["ratio"]) == (None, None)
