"""Two settings on the same queries, worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.search.comparison import Change, compare, find_changes


def test_measures_of_both_and_their_difference_query_by_query() -> None:
    a = [{"hit": 0.0, "same": 0.5}] * 20 + [{"hit": 1.0, "same": 0.25}] * 20
    b = [{"hit": 1.0, "same": 0.5}] * 20 + [{"hit": 1.0, "same": 0.25}] * 20
    hit, same = compare(("hit", "same"), a, b)
    assert (hit.measure, hit.a, hit.b, hit.verdict) == ("hit", 0.5, 1.0, "better")
    assert 0.3 < hit.low < 0.5 < hit.high < 0.7
    assert (same.low, same.high, same.verdict) == (0, 0, "no difference that can be told")


def test_pairing_sees_what_the_two_means_alone_would_not() -> None:
    """Queries differ from each other far more than the two settings do."""
    a = [{"x": float(query)} for query in range(50)]
    b = [{"x": query + 0.1} for query in range(50)]
    (difference,) = compare(("x",), a, b)
    assert difference.verdict == "better"
    assert (difference.low, difference.high) == (pytest.approx(0.1), pytest.approx(0.1))


def test_comparison_the_other_way_round_is_the_opposite() -> None:
    a = [{"x": 0.0}] * 30 + [{"x": 1.0}] * 10
    b = [{"x": 1.0}] * 20 + [{"x": 0.0}] * 20
    (forth,), (back,) = compare(("x",), a, b), compare(("x",), b, a)
    assert (back.low, back.high) == (pytest.approx(-forth.high), pytest.approx(-forth.low))


@pytest.mark.parametrize(
    ("a", "b", "outcome"),
    [
        (7, 6, "gained"),
        (None, 1, "gained"),
        (6, 7, "lost"),
        (1, None, "lost"),
        (3, 1, "up"),
        (None, 40, "up"),
        (1, 2, "down"),
        (8, None, "down"),
    ],
)
def test_outcome_of_a_change(a: int | None, b: int | None, outcome: str) -> None:
    assert Change(0, a, b).outcome == outcome


def test_changes_that_a_caller_sees_come_first_then_the_largest() -> None:
    a = [1, 1, 7, 30, None, 5]
    b = [1, 2, 6, 1, 40, None]
    assert [change.query for change in find_changes(a, b)] == [3, 5, 2, 1, 4]


RANKS = st.lists(st.tuples(*[st.none() | st.integers(1, 50)] * 2), max_size=20)


@given(RANKS)
def test_every_query_that_moved_is_listed_once_and_no_other(ranks: list[tuple[int | None, int | None]]) -> None:
    changes = find_changes([a for a, _ in ranks], [b for _, b in ranks])
    assert sorted(change.query for change in changes) == [place for place, (a, b) in enumerate(ranks) if a != b]
