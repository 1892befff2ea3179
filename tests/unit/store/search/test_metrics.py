"""The measures, worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.search.metrics import (
    Span,
    first_rank,
    group,
    mean,
    overlap_slice,
    percentile,
    score_query,
    wilson,
)

GOLD = [Span("a.md", 7, 7), Span("b.md", 3, 3)]


def test_perfect_results_score_one() -> None:
    measures = score_query(GOLD, GOLD)
    assert measures.pop("lines_per_result") == 1
    halves = {name: measures.pop(name) for name in ("line.recall@1", "file.recall@1", "doc.recall@1")}
    assert set(halves.values()) == {0.5}
    assert set(measures.values()) == {1.0}


def test_no_results_score_nothing() -> None:
    assert set(score_query(GOLD, []).values()) == {0.0}


def test_first_result_of_the_file_that_overlaps_the_line_finds_it() -> None:
    results = [Span("z.md", 1, 9), Span("a.md", 8, 30), Span("a.md", 1, 7)]
    measures = score_query(GOLD, results)
    assert (measures["line.hit@1"], measures["line.hit@5"], measures["line.recall@5"]) == (0, 1, 0.5)
    assert measures["line.mrr@10"] == pytest.approx(1 / 3)
    assert measures["line.ndcg@10"] == pytest.approx((1 / math.log2(4)) / (1 + 1 / math.log2(3)))
    assert measures["doc.mrr@10"] == pytest.approx(1 / 2)
    assert measures["lines_per_result"] == pytest.approx((9 + 23 + 7) / 3)


def test_grades_weigh_and_order_matters() -> None:
    gold = [Span("c.md", 1, 20, grade=3), Span("d.md", 1, 5, grade=1)]
    measures = score_query(gold, [Span("d.md", 1, 5), Span("c.md", 4, 9)])
    assert measures["doc.ndcg@10"] == pytest.approx((1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3)))


def test_repeats_of_a_file_do_not_push_other_documents_down() -> None:
    results = [*(Span("z.md", line, line) for line in range(1, 6)), Span("b.md", 3, 3)]
    measures = score_query(GOLD, results)
    assert (measures["line.hit@5"], measures["line.hit@6"]) == (0, 1)
    assert (measures["file.hit@5"], measures["file.hit@6"]) == (0, 1)
    assert (measures["doc.hit@5"], measures["doc.mrr@10"]) == (1, 0.5)


def test_one_chunk_with_both_lines_cannot_score_more_than_one() -> None:
    measures = score_query([Span("m.md", 1, 1), Span("m.md", 2, 2)], [Span("m.md", 1, 2)])
    assert (measures["line.ndcg@10"], measures["line.recall@1"]) == (1, 1)


def test_gold_that_is_listed_twice_counts_once_with_its_better_grade() -> None:
    gold = [Span("c.md", 1, 2, grade=3), Span("c.md", 1, 2, grade=1), Span("d.md", 1, 1, grade=1)]
    measures = score_query(gold, [Span("d.md", 1, 1), Span("c.md", 2, 2)])
    for level in ("line", "file", "doc"):
        assert measures[f"{level}.recall@1"] == 0.5
        assert measures[f"{level}.ndcg@10"] == pytest.approx((1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3)))


def test_first_rank_is_that_of_the_first_result_with_any_of_the_lines() -> None:
    assert first_rank(GOLD, [Span("a.md", 8, 9), Span("b.md", 1, 3), Span("a.md", 7, 7)]) == 2
    assert first_rank(GOLD, [Span("a.md", 1, 6)]) is None


def test_wilson_interval_is_that_of_the_textbook() -> None:
    assert wilson(0.5, 100) == (pytest.approx(0.4038, abs=5e-5), pytest.approx(0.5962, abs=5e-5))
    low, high = wilson(1.0, 62)
    assert low == pytest.approx(0.9417, abs=5e-5)
    assert high == pytest.approx(1)
    assert wilson(0.0, 0) == (0, 0)


def test_slices_begin_at_a_third_and_at_two_thirds() -> None:
    assert [overlap_slice(overlap) for overlap in (0, 0.339, 0.34, 0.669, 0.67, 1)] == [
        "~overlap-1-low",
        "~overlap-1-low",
        "~overlap-2-mid",
        "~overlap-2-mid",
        "~overlap-3-high",
        "~overlap-3-high",
    ]


def test_a_row_is_in_the_group_of_each_of_its_labels() -> None:
    assert group([(["b", "~x"], 1), (["a"], 2), (["b"], 3)]) == {"a": [2], "b": [1, 3], "~x": [1]}


SPANS = st.builds(
    lambda path, start, more: Span(path, start, start + more),
    st.sampled_from(["a.md", "b.md", "c.md"]),
    st.integers(1, 20),
    st.integers(0, 5),
)


@given(st.lists(SPANS, min_size=1, max_size=5), st.lists(SPANS, max_size=12))
def test_measures_stay_between_nothing_and_one_and_grow_with_the_cut(gold: list[Span], results: list[Span]) -> None:
    measures = score_query(gold, results)
    del measures["lines_per_result"]
    assert all(0 <= value <= 1 for value in measures.values())
    for level in ("line", "file", "doc"):
        cuts = [measures[f"{level}.recall@{cut}"] for cut in (1, 5, 6, 10)]
        assert cuts == sorted(cuts)


def test_mean_and_percentiles() -> None:
    assert mean([{"x": 1.0}, {"x": 0.0}]) == {"x": 0.5}
    assert mean([]) == {}
    assert percentile([5.0, 1.0, 3.0, 2.0, 4.0], 0.5) == 3
    assert percentile([5.0, 1.0, 3.0, 2.0, 4.0], 0.95) == 5
    assert percentile([], 0.5) == 0
