from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.search.answer import Candidate, LegRank
from memoryd.store.search.neighbours import REACH, Span, join_neighbours

# Chunks of two documents, each sharing a passage with the next one of its document.
SPANS = {
    document * 100 + number: Span(document, number * 4, number * 4 + 4) for document in (1, 2) for number in range(20)
}


def ranked(*chunks: int) -> list[Candidate]:
    return [
        Candidate(chunk, {"words": LegRank(1, 1.0)}, fused=1, relevance=1 / place)
        for place, chunk in enumerate(chunks, start=1)
    ]


def joined(*chunks: int, reach: int = REACH) -> list[tuple[int, int | None]]:
    return [
        (each.candidate.chunk_id, each.neighbour.chunk_id if each.neighbour else None)
        for each in join_neighbours(ranked(*chunks), SPANS, reach)
    ]


def test_neighbours_become_one_in_the_place_of_the_better_one() -> None:
    assert joined(205, 101, 203, 100, 110) == [(205, None), (101, 100), (203, None), (110, None)]


def test_chunks_that_share_no_passage_stay_apart() -> None:
    assert joined(101, 103, 201) == [(101, None), (103, None), (201, None)]


def test_third_of_a_run_is_a_hit_of_its_own() -> None:
    assert joined(101, 102, 103) == [(101, 102), (103, None)]
    assert joined(101, 102, 103, 104) == [(101, 102), (103, 104)]


def test_chunk_between_two_better_ones_joins_the_best() -> None:
    assert joined(103, 101, 102) == [(103, 102), (101, None)]


def test_chunk_between_joins_the_other_where_the_best_has_a_neighbour_already() -> None:
    assert joined(103, 104, 101, 102) == [(103, 104), (101, 102)]


def test_neighbour_far_behind_stays_apart() -> None:
    far = [201, 203, 205, 207, 209, 211]
    assert joined(101, *far[: REACH - 1], 102)[0] == (101, 102)
    assert joined(101, *far, 102)[0] == (101, None)


def test_reach_of_0_joins_nothing() -> None:
    assert joined(101, 102, reach=0) == [(101, None), (102, None)]


@given(st.permutations(list(SPANS)), st.integers(0, 40), st.integers(0, 10))
def test_what_comes_later_changes_nothing_beyond_its_reach(chunks: list[int], count: int, reach: int) -> None:
    whole = joined(*chunks, reach=reach)
    some = joined(*chunks[:count], reach=reach)
    settled = [each for each in some if chunks.index(each[0]) + reach < count]
    assert whole[: len(settled)] == settled


@given(st.permutations(list(SPANS)), st.integers(0, 10))
def test_every_candidate_is_there_once_and_the_order_of_the_others_stays(chunks: list[int], reach: int) -> None:
    found = joined(*chunks, reach=reach)
    assert sorted([chunk for chunk, _ in found] + [other for _, other in found if other is not None]) == sorted(SPANS)
    places = [chunks.index(chunk) for chunk, _ in found]
    assert places == sorted(places)
    for chunk, other in found:
        if other is not None:
            assert SPANS[chunk].overlaps(SPANS[other])
            assert 0 < chunks.index(other) - chunks.index(chunk) <= reach
