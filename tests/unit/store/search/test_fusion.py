from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.search.answer import Candidate, LegRank
from memoryd.store.search.fusion import fuse


def ranking(*chunks: int) -> dict[int, LegRank]:
    return {chunk: LegRank(rank, 1.0 / rank) for rank, chunk in enumerate(chunks, start=1)}


def order(candidates: list[Candidate]) -> list[int]:
    return [candidate.chunk_id for candidate in candidates]


def scores(candidates: list[Candidate]) -> dict[int, float]:
    return {candidate.chunk_id: candidate.fused for candidate in candidates}


EQUAL = {"words": 1.0, "vector": 1.0}
RANKINGS = st.lists(st.integers(0, 20), unique=True, max_size=15).map(lambda chunks: ranking(*chunks))
WEIGHTS = st.floats(0.01, 10)
KS = st.floats(0.0, 100)


@given(RANKINGS, WEIGHTS, KS)
def test_one_leg_keeps_its_order(leg: dict[int, LegRank], weight: float, k: float) -> None:
    assert order(fuse({"words": leg}, {"words": weight}, k)) == list(leg)


@given(RANKINGS, RANKINGS, WEIGHTS, WEIGHTS, KS, st.sets(st.integers(0, 20)))
def test_scores_lie_between_0_and_1_and_come_best_first(
    keyword: dict[int, LegRank], vector: dict[int, LegRank], one: float, two: float, k: float, unknown: set[int]
) -> None:
    weights = {"words": one, "vector": two}
    fused = fuse({"words": keyword, "vector": vector}, weights, k, {"vector": unknown})
    values = [candidate.fused for candidate in fused]
    assert all(0 < value <= 1 + 1e-9 for value in values)
    assert values == sorted(values, reverse=True)
    assert set(order(fused)) == keyword.keys() | vector.keys()


@given(RANKINGS, RANKINGS, KS)
def test_leg_that_misses_two_chunks_leaves_their_order(
    keyword: dict[int, LegRank], vector: dict[int, LegRank], k: float
) -> None:
    fused = order(fuse({"words": keyword, "vector": vector}, EQUAL, k))
    missed = [chunk for chunk in keyword if chunk not in vector]
    assert [chunk for chunk in fused if chunk in missed] == missed


@given(RANKINGS, RANKINGS, KS)
def test_being_found_by_another_leg_never_costs_anything(
    keyword: dict[int, LegRank], vector: dict[int, LegRank], k: float
) -> None:
    both = scores(fuse({"words": keyword, "vector": vector}, EQUAL, k))
    without = scores(fuse({"words": keyword, "vector": {}}, EQUAL, k))
    assert all(both[chunk] >= without[chunk] for chunk in keyword)


@given(RANKINGS, RANKINGS, KS)
def test_unknown_chunks_are_judged_by_the_other_leg_alone(
    keyword: dict[int, LegRank], vector: dict[int, LegRank], k: float
) -> None:
    unknown = keyword.keys() - vector.keys()
    fused = scores(fuse({"words": keyword, "vector": vector}, EQUAL, k, {"vector": unknown}))
    alone = scores(fuse({"words": keyword}, EQUAL, k))
    assert all(fused[chunk] == pytest.approx(alone[chunk]) for chunk in unknown)


def test_unknown_chunk_that_a_leg_brought_all_the_same_is_judged_by_it() -> None:
    legs = {"words": ranking(1, 2), "vector": ranking(2)}
    assert scores(fuse(legs, EQUAL, 10, {"vector": {2}})) == scores(fuse(legs, EQUAL, 10))


def test_first_in_every_leg_is_worth_1() -> None:
    assert scores(fuse({"words": ranking(7, 8), "vector": ranking(7, 9)}, EQUAL, 10))[7] == 1.0


def test_agreement_beats_one_first_place() -> None:
    fused = fuse({"words": ranking(1, 3), "vector": ranking(2, 3)}, EQUAL, 10)
    assert order(fused)[0] == 3


def test_heavier_leg_wins() -> None:
    legs = {"words": ranking(1), "vector": ranking(2)}
    assert order(fuse(legs, {"words": 2, "vector": 1}, 10)) == [1, 2]
    assert order(fuse(legs, {"words": 1, "vector": 2}, 10)) == [2, 1]


def test_keyword_side_wins_ties_whatever_the_ids() -> None:
    assert order(fuse({"words": ranking(9), "vector": ranking(1)}, EQUAL, 10)) == [9, 1]
    assert order(fuse({"words": ranking(1), "vector": ranking(9)}, EQUAL, 10)) == [1, 9]


def test_nothing_fused_is_nothing() -> None:
    assert fuse({}, EQUAL, 10) == []
    assert fuse({"words": {}}, EQUAL, 10) == []


def test_candidate_knows_its_place_in_each_leg() -> None:
    (candidate,) = fuse({"words": ranking(5), "vector": {5: LegRank(3, 0.7, passage=2)}}, EQUAL, 10)
    assert candidate.legs == {"words": LegRank(1, 1.0), "vector": LegRank(3, 0.7, passage=2)}
