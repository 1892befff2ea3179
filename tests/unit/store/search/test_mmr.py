from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.protocols import Vectors
from memoryd.store.search.answer import Candidate, LegRank, MmrStep
from memoryd.store.search.mmr import diversify, mean_vector, measure_similarities


def ranked(*scores: float) -> list[Candidate]:
    return [
        Candidate(10 + number, {"words": LegRank(1, 1.0)}, fused=1, relevance=score)
        for number, score in enumerate(scores)
    ]


def vector(*numbers: float) -> Vectors:
    return np.asarray(np.array(numbers) / np.linalg.norm(numbers), np.float32)


def order(candidates: list[Candidate]) -> list[int]:
    return [candidate.chunk_id for candidate in candidates]


SQUARE = st.integers(1, 8).flatmap(
    lambda size: st.tuples(
        st.lists(st.floats(0.001, 1), min_size=size, max_size=size),
        st.lists(st.floats(0, 1), min_size=size * size, max_size=size * size),
    )
)


@given(SQUARE)
def test_relevance_alone_changes_nothing(case: tuple[list[float], list[float]]) -> None:
    candidates = ranked(*case[0])  # in no order: whatever was given stays as it is
    similarities = np.array(case[1]).reshape(len(candidates), -1)
    assert diversify(candidates, similarities, 1.0) == candidates


@given(SQUARE, st.floats(0, 0.99))
def test_every_candidate_stays_with_its_score_and_the_first_comes_first(
    case: tuple[list[float], list[float]], relevance: float
) -> None:
    candidates = ranked(*sorted(case[0], reverse=True))
    found = diversify(candidates, np.array(case[1]).reshape(len(candidates), -1), relevance)
    assert {each.chunk_id: each.score for each in found} == {each.chunk_id: each.score for each in candidates}
    assert relevance == 0 or found[0].score == candidates[0].score


def test_twin_of_a_better_one_comes_later_and_names_it() -> None:
    candidates = ranked(1.0, 0.95, 0.8)
    similarities = np.array([[1, 0.98, 0.1], [0.98, 1, 0.1], [0.1, 0.1, 1]])
    found = diversify(candidates, similarities, 0.7)
    assert order(found) == [10, 12, 11]
    assert [each.mmr for each in found] == [None, MmrStep(3, 0.1, 10), MmrStep(2, 0.98, 10)]


def test_nearest_is_the_most_alike_of_all_chosen_before() -> None:
    candidates = ranked(1.0, 0.9, 0.5)
    similarities = np.array([[1, 0, 0.3], [0, 1, 0.6], [0.3, 0.6, 1]])
    assert diversify(candidates, similarities, 0.7)[2].mmr == MmrStep(3, 0.6, 11)


def test_weak_candidate_is_not_lifted_over_a_strong_one_by_being_different() -> None:
    candidates = ranked(1.0, 0.9, 0.2)
    similarities = np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1]])
    assert order(diversify(candidates, similarities, 0.7)) == [10, 11, 12]


def test_scale_of_the_scores_does_not_matter() -> None:
    similarities = np.array([[1, 0.98, 0.1], [0.98, 1, 0.1], [0.1, 0.1, 1]])
    for scale in (1.0, 0.1, 0.001):
        candidates = ranked(*(scale * score for score in (1.0, 0.95, 0.8)))
        assert order(diversify(candidates, similarities, 0.7)) == [10, 12, 11]


def test_nothing_and_scores_of_0_are_survived() -> None:
    assert diversify([], np.zeros((0, 0)), 0.7) == []
    assert order(diversify(ranked(0, 0), np.eye(2), 0.7)) == [10, 11]


def test_similarity_is_the_cosine_where_both_have_a_vector() -> None:
    vectors = {10: vector(1, 0), 11: vector(1, 1), 12: vector(-1, 0)}
    found = measure_similarities(ranked(1, 1, 1), vectors, {})
    assert found[0].tolist() == pytest.approx([1, 0.7071, 0], abs=1e-4)  # opposites are no more than unlike
    assert np.allclose(found, found.T)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("the goat ate", "The goat sang", 2 / 4),
        ("数据库迁移", "数据库备份", 2 / 6),
        ("документ готов", "Документ утерян", 1 / 3),
        ("", "words", 0.0),
    ],
)
def test_without_vectors_it_is_the_share_of_words_in_common(left: str, right: str, expected: float) -> None:
    found = measure_similarities(ranked(1, 1), {}, {10: left, 11: right})
    assert found[0][1] == found[1][0] == pytest.approx(expected)


def test_one_missing_vector_does_not_cost_the_others_theirs() -> None:
    texts = {10: "the goat ate", 11: "something else", 12: "the goat ate"}
    found = measure_similarities(ranked(1, 1, 1), {10: vector(1, 0), 11: vector(1, 1)}, texts)
    assert found[0].tolist() == pytest.approx([1, 0.7071, 1], abs=1e-4)
    assert found[1][2] == 0


def test_mean_of_vectors_has_length_1() -> None:
    assert mean_vector([]) is None
    assert mean_vector([vector(1, 0), vector(-1, 0)]) is None
    mean = mean_vector([vector(1, 0), vector(0, 1)])
    assert mean is not None
    assert mean.tolist() == pytest.approx(vector(1, 1).tolist())
