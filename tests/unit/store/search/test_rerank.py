from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.search.answer import BestPassage, Candidate, LegRank, RerankStep
from memoryd.store.search.chunk_rows import ChunkRow, PassageRow
from memoryd.store.search.highlights import Marker
from memoryd.store.search.neighbours import Span
from memoryd.store.search.rerank import Reading, best_of_each, blend, confidence, is_clear, pool, reading_order


def candidate(chunk: int, relevance: float, passage: int | None = None) -> Candidate:
    legs = {"vector": LegRank(1, 0.5, 0.5, passage)} if passage is not None else {}
    return Candidate(chunk, legs, relevance, relevance)


def row(passages: dict[int, tuple[int, str]]) -> ChunkRow:
    """Ordinal -> id and text."""
    first = min(passages)
    rows = {ordinal: PassageRow(identity, text, 1) for ordinal, (identity, text) in passages.items()}
    return ChunkRow("k", Span(1, first, max(passages)), "", 1, 2, "w", "p", "memory", None, "global", None, rows)


def order(candidates: list[Candidate]) -> list[int]:
    return [each.chunk_id for each in candidates]


RELEVANCES = st.lists(st.floats(0, 1), min_size=1, max_size=12).map(lambda values: sorted(values, reverse=True))
LOGITS = st.floats(-12, 12)


def judged(scores: dict[int, float]) -> dict[int, RerankStep]:
    return {chunk: RerankStep(score, confidence(score), 0) for chunk, score in scores.items()}


def test_one_that_is_far_ahead_is_clear() -> None:
    assert is_clear([])
    assert is_clear([candidate(1, 0.2)])
    assert is_clear([candidate(1, 0.9), candidate(2, 0.4)])
    assert not is_clear([candidate(1, 0.5), candidate(2, 0.45)])


def test_what_is_ahead_by_its_best_passage_alone_is_not_clear() -> None:
    """A passage can have every word of a question and not answer it: that is what reading is for."""
    ahead = Candidate(1, {}, 0.7 * 0.47 + 0.3 * 0.77, 0.7 * 0.47 + 0.3 * 0.77, best=BestPassage(0.77, 0, 0.3))
    behind = Candidate(2, {}, 0.7 * 0.35 + 0.3 * 0.46, 0.7 * 0.35 + 0.3 * 0.46, best=BestPassage(0.46, 0, 0.3))
    assert ahead.relevance - behind.relevance > 0.15
    assert not is_clear([ahead, behind])
    assert is_clear([ahead, Candidate(3, {}, 0.1, 0.1)])


def test_one_passage_of_each_that_may_be_returned_is_read_before_the_foremost_are_read_whole() -> None:
    """Where time is short, those among which the answer is chosen were read alike."""
    rows = {chunk: row({0: (10 * chunk, "a"), 1: (10 * chunk + 1, "b")}) for chunk in range(1, 15)}
    nearness = {10 * chunk + 1: 0.9 for chunk in range(1, 15)}
    ranked = [candidate(chunk, 0.9 - chunk / 20, 1) for chunk in range(1, 15)]
    found = [reading.passage for reading in reading_order(ranked, rows, nearness, Marker("x"))]
    assert found[:12] == [10 * chunk + 1 for chunk in range(1, 13)]
    assert found[12:15] == [10, 20, 30]
    assert found[15:17] == [131, 141]
    assert found[17:] == [10 * chunk for chunk in range(4, 15)]


def test_passage_of_two_chunks_is_read_once_and_counts_for_both() -> None:
    rows = {1: row({0: (10, "a"), 1: (11, "b")}), 2: row({1: (11, "b"), 2: (12, "c")})}
    found = reading_order([candidate(1, 0.5, 0), candidate(2, 0.45, 2)], rows, {}, Marker("x"))
    assert sorted(reading.passage for reading in found) == [10, 11, 12]
    (shared,) = [reading for reading in found if reading.passage == 11]
    assert shared.chunks == ((1, 1), (2, 1))


def test_blank_passages_are_not_read() -> None:
    assert reading_order([candidate(1, 0.5)], {1: row({0: (10, "\n\n"), 1: (11, "b")})}, {}, Marker("x")) == [
        Reading(11, "b", ((1, 1),))
    ]


def test_the_best_passage_stands_for_its_chunk_as_far_as_was_read() -> None:
    readings = [Reading(10, "a", ((1, 0),)), Reading(11, "b", ((1, 1), (2, 1))), Reading(12, "c", ((2, 2),))]
    found = best_of_each(readings, [-3.0, 2.0])
    assert (found[1].score, found[1].passage) == (2.0, 1)
    assert (found[2].score, found[2].passage) == (2.0, 1)


@given(RELEVANCES, st.lists(LOGITS, max_size=12), st.floats(0, 1))
def test_blended_relevance_is_0_to_1_and_comes_best_first(
    relevances: list[float], logits: list[float], weight: float
) -> None:
    before = [candidate(chunk, relevance) for chunk, relevance in enumerate(relevances)]
    scores = judged(dict(enumerate(logits[: len(before)])))
    after = blend(before, scores, weight)
    values = [each.relevance for each in after]
    assert sorted(order(after)) == sorted(order(before))
    assert all(-1e-9 <= value <= 1 + 1e-9 for value in values)
    assert values == sorted(values, reverse=True)


@given(RELEVANCES, st.lists(LOGITS, max_size=12))
def test_without_weight_nothing_changes(relevances: list[float], logits: list[float]) -> None:
    before = [candidate(chunk, relevance) for chunk, relevance in enumerate(relevances)]
    after = blend(before, judged(dict(enumerate(logits[: len(before)]))), 0.0)
    assert order(after) == order(before)
    assert [each.relevance for each in after] == pytest.approx(relevances, abs=1e-5)


def test_with_all_the_weight_only_the_reranker_counts() -> None:
    assert pool(0.9, -4.0, 1.0) == pool(0.1, -4.0, 1.0) == confidence(-4.0)


@given(st.floats(0, 1), LOGITS, LOGITS, st.floats(0.01, 1))
def test_who_answers_better_of_two_equals_comes_no_later(
    relevance: float, one: float, other: float, weight: float
) -> None:
    better, worse = max(one, other), min(one, other)
    assert pool(relevance, better, weight) >= pool(relevance, worse, weight)


def test_both_are_pooled_by_their_odds() -> None:
    """A doubling of the odds counts as much at the bottom of the scale as in the middle."""
    assert pool(0.5, 0.0, 0.3) == pytest.approx(0.5)
    pooled = pool(0.2, -3.0, 0.3)
    assert pooled / (1 - pooled) == pytest.approx(0.25**0.7 * math.exp(-0.3))


def test_what_was_not_read_is_not_taken_for_worse_than_what_was() -> None:
    before = [candidate(1, 0.5), candidate(2, 0.4), candidate(3, 0.3)]
    after = blend(before, judged({1: -5.0, 2: -4.0}), 0.5)
    unread = next(each for each in after if each.chunk_id == 3)
    assert unread.rerank is None
    assert unread.relevance == pool(0.3, -5.0, 0.5)


def test_the_step_tells_what_was_before() -> None:
    after = blend([candidate(1, 0.5), candidate(2, 0.4)], judged({1: -8.0, 2: 8.0}), 0.5)
    assert order(after) == [2, 1]
    assert after[0].rerank is not None
    assert (after[0].rerank.place, after[0].rerank.relevance) == (2, 0.4)
