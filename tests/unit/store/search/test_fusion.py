from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.search.answer import Candidate, LegRank, Weight
from memoryd.store.search.fusion import NOISE_SCORE, calibrate, fuse, standout, weigh_legs
from memoryd.store.search.noise import Noise
from memoryd.store.search.request import Fusion


def ranking(*chunks: int) -> dict[int, LegRank]:
    return {chunk: LegRank(rank, 1.0 / rank, share=1.0 / rank) for rank, chunk in enumerate(chunks, start=1)}


def order(candidates: list[Candidate]) -> list[int]:
    return [candidate.chunk_id for candidate in candidates]


def scores(candidates: list[Candidate]) -> dict[int, float]:
    return {candidate.chunk_id: candidate.fused for candidate in candidates}


EQUAL = {"words": 1.0, "vector": 1.0}
RANKINGS = st.lists(st.integers(0, 20), unique=True, max_size=15).map(lambda chunks: ranking(*chunks))
WEIGHTS = st.floats(0.01, 10)
KS = st.floats(0.0, 100)
FUSIONS: st.SearchStrategy[Fusion] = st.sampled_from(["weighted", "rrf"])
EITHER = pytest.mark.parametrize("fusion", ["weighted", "rrf"])


@given(RANKINGS, WEIGHTS, FUSIONS, KS)
def test_one_leg_keeps_its_order(leg: dict[int, LegRank], weight: float, fusion: Fusion, k: float) -> None:
    assert order(fuse({"words": leg}, {"words": weight}, fusion, k)) == list(leg)


@given(RANKINGS, RANKINGS, WEIGHTS, WEIGHTS, FUSIONS, KS, st.sets(st.integers(0, 20)))
def test_scores_lie_between_0_and_1_and_come_best_first(
    keyword: dict[int, LegRank],
    vector: dict[int, LegRank],
    one: float,
    two: float,
    fusion: Fusion,
    k: float,
    unknown: set[int],
) -> None:
    weights = {"words": one, "vector": two}
    fused = fuse({"words": keyword, "vector": vector}, weights, fusion, k, {"vector": unknown})
    values = [candidate.fused for candidate in fused]
    assert all(0 < value <= 1 + 1e-9 for value in values)
    assert values == sorted(values, reverse=True)
    assert set(order(fused)) == keyword.keys() | vector.keys()


@given(RANKINGS, RANKINGS, FUSIONS, KS)
def test_leg_that_misses_two_chunks_leaves_their_order(
    keyword: dict[int, LegRank], vector: dict[int, LegRank], fusion: Fusion, k: float
) -> None:
    fused = order(fuse({"words": keyword, "vector": vector}, EQUAL, fusion, k))
    missed = [chunk for chunk in keyword if chunk not in vector]
    assert [chunk for chunk in fused if chunk in missed] == missed


@given(RANKINGS, RANKINGS, FUSIONS, KS)
def test_being_found_by_another_leg_never_costs_anything(
    keyword: dict[int, LegRank], vector: dict[int, LegRank], fusion: Fusion, k: float
) -> None:
    both = scores(fuse({"words": keyword, "vector": vector}, EQUAL, fusion, k))
    without = scores(fuse({"words": keyword, "vector": {}}, EQUAL, fusion, k))
    assert all(both[chunk] >= without[chunk] for chunk in keyword)


@given(RANKINGS, RANKINGS, FUSIONS, KS)
def test_unknown_chunks_are_judged_by_the_other_leg_alone(
    keyword: dict[int, LegRank], vector: dict[int, LegRank], fusion: Fusion, k: float
) -> None:
    unknown = keyword.keys() - vector.keys()
    fused = scores(fuse({"words": keyword, "vector": vector}, EQUAL, fusion, k, {"vector": unknown}))
    alone = scores(fuse({"words": keyword}, EQUAL, fusion, k))
    assert all(fused[chunk] == pytest.approx(alone[chunk]) for chunk in unknown)


@EITHER
def test_unknown_chunk_that_a_leg_brought_all_the_same_is_judged_by_it(fusion: Fusion) -> None:
    legs = {"words": ranking(1, 2), "vector": ranking(2)}
    assert scores(fuse(legs, EQUAL, fusion, 10, {"vector": {2}})) == scores(fuse(legs, EQUAL, fusion, 10))


@EITHER
def test_first_in_every_leg_is_worth_1(fusion: Fusion) -> None:
    assert scores(fuse({"words": ranking(7, 8), "vector": ranking(7, 9)}, EQUAL, fusion, 10))[7] == 1.0


@EITHER
def test_agreement_beats_one_first_place(fusion: Fusion) -> None:
    near = LegRank(2, 0.9, share=0.9)
    fused = fuse({"words": ranking(1) | {3: near}, "vector": ranking(2) | {3: near}}, EQUAL, fusion, 10)
    assert order(fused)[0] == 3


@EITHER
def test_heavier_leg_wins(fusion: Fusion) -> None:
    legs = {"words": ranking(1), "vector": ranking(2)}
    assert order(fuse(legs, {"words": 2, "vector": 1}, fusion, 10)) == [1, 2]
    assert order(fuse(legs, {"words": 1, "vector": 2}, fusion, 10)) == [2, 1]


@EITHER
def test_keyword_side_wins_ties_whatever_the_ids(fusion: Fusion) -> None:
    assert order(fuse({"words": ranking(9), "vector": ranking(1)}, EQUAL, fusion, 10)) == [9, 1]
    assert order(fuse({"words": ranking(1), "vector": ranking(9)}, EQUAL, fusion, 10)) == [1, 9]


@EITHER
def test_nothing_fused_is_nothing(fusion: Fusion) -> None:
    assert fuse({}, EQUAL, fusion, 10) == []
    assert fuse({"words": {}}, EQUAL, fusion, 10) == []


@EITHER
def test_candidate_knows_its_place_in_each_leg(fusion: Fusion) -> None:
    (candidate,) = fuse({"words": ranking(5), "vector": {5: LegRank(3, 0.7, passage=2)}}, EQUAL, fusion, 10)
    assert candidate.legs == {"words": LegRank(1, 1.0, share=1.0), "vector": LegRank(3, 0.7, passage=2)}


def test_weighted_fusion_sees_gaps_where_ranks_have_none() -> None:
    words = {1: LegRank(1, 2.0, share=0.21), 2: LegRank(2, 1.9, share=0.2)}
    vector = {2: LegRank(1, 0.8, share=0.8), 1: LegRank(2, 0.3, share=0.3)}
    legs = {"words": words, "vector": vector}
    assert scores(fuse(legs, EQUAL, "rrf", 10))[1] == scores(fuse(legs, EQUAL, "rrf", 10))[2]
    assert order(fuse(legs, EQUAL, "weighted", 10)) == [2, 1]


# -- weights -------------------------------------------------------------------------------------------------


def values(legs: dict[str, dict[int, LegRank]], noise: Noise, fusion: Fusion, *, adaptive: bool) -> dict[str, float]:
    weights = weigh_legs(legs, {"words": 1.0, "vector": 0.5}, noise, fusion=fusion, adaptive=adaptive)
    return {leg: weight.value for leg, weight in weights.items()}


@EITHER
def test_weights_that_do_not_adapt_are_those_configured(fusion: Fusion) -> None:
    legs = {"words": ranking(1, 2), "vector": {3: LegRank(1, 0.2, share=0.1)}}
    assert values(legs, Noise({"words": 0.9}), fusion, adaptive=False) == {"words": 1.0, "vector": 0.5}


@EITHER
def test_leg_that_takes_nonsense_for_sense_counts_less(fusion: Fusion) -> None:
    legs = {"words": ranking(1), "vector": ranking(1)}
    told = values(legs, Noise({"words": 0.1, "vector": 0.1}), fusion, adaptive=True)
    blind = values(legs, Noise({"words": 0.1, "vector": 0.8}), fusion, adaptive=True)
    assert blind["words"] == told["words"]
    assert blind["vector"] < told["vector"]


def test_ranks_count_less_where_the_best_match_is_poor() -> None:
    legs = {"words": {1: LegRank(1, 0.4, share=0.04)}, "vector": ranking(1)}
    assert values(legs, Noise(), "rrf", adaptive=True) == {"words": 0.2, "vector": 0.5}
    assert values(legs, Noise(), "weighted", adaptive=True)["words"] == 1.0  # its share is small enough


def spread(*shares: float) -> dict[int, LegRank]:
    return {chunk: LegRank(chunk, share, share) for chunk, share in enumerate(shares, start=1)}


def test_vectors_count_more_where_one_chunk_stands_out() -> None:
    crowd = values({"vector": spread(0.5, 0.5, 0.5, 0.5, 0.5, 0.49)}, Noise(), "weighted", adaptive=True)
    usual = values({"vector": spread(0.5, 0.4, 0.4, 0.4, 0.4, 0.4)}, Noise(), "weighted", adaptive=True)
    clear = values({"vector": spread(0.5, 0.2, 0.1, 0.1, 0.1, 0.1)}, Noise(), "weighted", adaptive=True)
    assert crowd["vector"] < usual["vector"] < clear["vector"]


def test_vectors_count_less_in_a_script_that_the_model_puts_close_together() -> None:
    legs = {"words": spread(0.5, 0.2), "vector": spread(0.5, 0.2)}
    told = values(legs, Noise(spread=0.95), "weighted", adaptive=True)
    blind = values(legs, Noise(spread=0.5), "weighted", adaptive=True)
    assert blind["vector"] < told["vector"]
    assert blind["words"] == told["words"]
    usual = values(legs, Noise(spread=0.84), "weighted", adaptive=True)
    assert usual["vector"] == pytest.approx(0.5)  # as configured


@pytest.mark.parametrize(
    ("shares", "apart"),
    [((), 0), ((0.0,), 0), ((0.4,), 1), ((0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.1), 0.5), ((0.3,) * 9, 0)],
)
def test_standing_out_is_measured_against_the_sixth(shares: tuple[float, ...], apart: float) -> None:
    assert standout(spread(*shares)) == pytest.approx(apart)


# -- scores that mean the same everywhere ----------------------------------------------------------------------


def relevances(share: float, noise: float, fusion: Fusion = "weighted") -> list[float]:
    legs = {"words": {1: LegRank(1, 1.0, share), 2: LegRank(2, 0.5, share / 2)}}
    weights = {"words": Weight(1.0, noise, share, 1.0)}
    fused = fuse(legs, {"words": 1.0}, fusion, 10)
    return [candidate.relevance for candidate in calibrate(fused, weights, fusion)]


@EITHER
@pytest.mark.parametrize("noise", [0.05, 0.3, 0.6])
def test_nonsense_scores_the_same_in_every_memory(noise: float, fusion: Fusion) -> None:
    assert relevances(noise, noise, fusion)[0] == pytest.approx(NOISE_SCORE)


@given(st.floats(0.01, 1), st.floats(0, 0.99), FUSIONS)
def test_relevance_keeps_the_order_and_lies_between_0_and_1(share: float, noise: float, fusion: Fusion) -> None:
    first, second = relevances(share, noise, fusion)
    assert 0 < second <= first <= 1


def test_perfect_match_scores_1() -> None:
    assert relevances(1.0, 0.4)[0] == 1.0


def test_nothing_to_calibrate_is_nothing() -> None:
    assert calibrate([], {}, "weighted") == []
