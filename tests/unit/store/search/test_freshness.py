"""Of two dated notes that say alike things, the newer one first; over a real ledger."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.errors import StoreUnavailable
from memoryd.store.protocols import VectorIndex, Vectors
from memoryd.store.search.answer import Candidate, LegRank
from memoryd.store.search.freshness import order_pairs, put_newer_first
from memoryd.store.search.request import Decay
from tests.support.documents import make_document
from tests.support.ledger import Ledger
from tests.support.memory_vectors import MemoryVectors

OLD, NEW, OTHER = "stand-up is at nine", "stand-up is at ten", "the goat ate the map"
NEAR = {"vector": LegRank(1, 0.8, 0.5, passage=0)}


@pytest.fixture
def index(ledger: Ledger) -> MemoryVectors:
    """Three notes, two of which say alike things."""
    ledger.put(*(make_document(f"memory/{place}.md", text) for place, text in enumerate((OLD, NEW, OTHER))))
    ledger.generation(dimension=2)
    index = MemoryVectors(2)
    ledger.embed(index, {OLD: unit(0.0), NEW: unit(0.3), OTHER: unit(1.5)})
    return index


def unit(angle: float) -> Vectors:
    return np.array([np.cos(angle), np.sin(angle)], np.float32)


def candidate(ledger: Ledger, text: str, score: float, age: int | None) -> Candidate:
    return Candidate(ledger.chunk_ids()[text], NEAR, fused=score, relevance=score, age_days=age)


def order(
    ledger: Ledger, index: VectorIndex | None, *candidates: Candidate, floor: float = 0.0, decay: Decay | None = None
) -> list[str]:
    names = {identity: text for text, identity in ledger.chunk_ids().items()}
    with ledger.database.read() as sql:
        found = put_newer_first(sql, candidates, index, floor, decay or Decay())
    assert all(one.score >= two.score for one, two in pairwise(found))
    return [names[each.chunk_id] for each in found]


def test_newer_one_goes_before_the_older_one(ledger: Ledger, index: MemoryVectors) -> None:
    old, other, new = (
        candidate(ledger, OLD, 0.5, 100),
        candidate(ledger, OTHER, 0.45, 1),
        candidate(ledger, NEW, 0.44, 3),
    )
    assert order(ledger, index, old, other, new) == [NEW, OLD, OTHER]


def test_what_says_something_else_stays(ledger: Ledger, index: MemoryVectors) -> None:
    assert order(ledger, index, candidate(ledger, OLD, 0.5, 100), candidate(ledger, OTHER, 0.49, 1)) == [OLD, OTHER]


def test_what_has_the_words_less_stays(ledger: Ledger, index: MemoryVectors) -> None:
    old, new = candidate(ledger, OLD, 0.5, 100), candidate(ledger, NEW, 0.49, 1)
    worded = old._replace(legs={**NEAR, "words": LegRank(1, 1.0, 0.3)})
    assert order(ledger, index, worded, new) == [OLD, NEW]
    assert order(ledger, index, worded, new._replace(legs=worded.legs)) == [NEW, OLD]


def test_what_fits_the_query_much_less_stays(ledger: Ledger, index: MemoryVectors) -> None:
    assert order(ledger, index, candidate(ledger, OLD, 0.5, 100), candidate(ledger, NEW, 0.3, 1)) == [OLD, NEW]


@pytest.mark.parametrize(("older", "newer"), [(None, 1), (100, None), (5, 5)])
def test_what_has_no_age_or_the_same_stays(
    older: int | None, newer: int | None, ledger: Ledger, index: MemoryVectors
) -> None:
    assert order(ledger, index, candidate(ledger, OLD, 0.5, older), candidate(ledger, NEW, 0.49, newer)) == [OLD, NEW]


@pytest.mark.parametrize("decay", [Decay(strength=0.0), Decay(nearly=1.0)])
def test_it_can_be_turned_off(decay: Decay, ledger: Ledger, index: MemoryVectors) -> None:
    pair = candidate(ledger, OLD, 0.5, 100), candidate(ledger, NEW, 0.49, 1)
    assert order(ledger, index, *pair, decay=decay) == [OLD, NEW]


def test_to_a_model_that_puts_all_close_together_little_is_alike(ledger: Ledger, index: MemoryVectors) -> None:
    pair = candidate(ledger, OLD, 0.5, 100), candidate(ledger, NEW, 0.49, 1)
    assert order(ledger, index, *pair, floor=0.97) == [OLD, NEW]


def test_without_vectors_the_order_stays(ledger: Ledger, index: MemoryVectors) -> None:
    pair = candidate(ledger, OLD, 0.5, 100), candidate(ledger, NEW, 0.49, 1)
    assert order(ledger, None, *pair) == [OLD, NEW]
    wordy = [each._replace(legs={"words": LegRank(1, 1.0, 0.5)}) for each in pair]
    assert order(ledger, index, *wordy) == [OLD, NEW]


def test_an_index_that_fails_costs_nothing_else(ledger: Ledger, index: MemoryVectors) -> None:
    class Away(MemoryVectors):
        def vectors(self, ids: Collection[int]) -> dict[int, Vectors]:
            raise StoreUnavailable("away")

    assert order(ledger, Away(2), candidate(ledger, OLD, 0.5, 100), candidate(ledger, NEW, 0.49, 1)) == [OLD, NEW]


@given(
    st.lists(st.tuples(st.floats(0.01, 1), st.integers(0, 400)), min_size=1, max_size=8),
    st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7))),
)
def test_none_is_lost_and_scores_still_fall(facts: list[tuple[float, int]], pairs: set[tuple[int, int]]) -> None:
    ranked = sorted(facts, reverse=True)
    candidates = [
        Candidate(number, {}, score, relevance=score, age_days=age) for number, (score, age) in enumerate(ranked)
    ]
    found = order_pairs(candidates, {(one, two) for one, two in pairs if one < two})
    assert sorted(each.chunk_id for each in found) == list(range(len(candidates)))
    assert all(one.score >= two.score for one, two in pairwise(found))
