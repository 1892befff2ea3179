from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.search.decay import age_in_days, decay_factor
from memoryd.store.search.request import Decay

TODAY = date(2026, 11, 15)
FULL = Decay(half_life_days=30, strength=1)


@pytest.mark.parametrize(("age", "factor"), [(0, 1.0), (7, 0.8507), (30, 0.5), (90, 0.125)])
def test_full_decay_halves_every_thirty_days(age: int, factor: float) -> None:
    assert decay_factor(age, FULL) == pytest.approx(factor, abs=1e-4)


def test_strength_is_the_share_of_the_score_that_age_can_take() -> None:
    assert decay_factor(30, Decay(30, 0.2)) == pytest.approx(0.9)
    assert decay_factor(100_000, Decay(30, 0.2)) == pytest.approx(0.8)


@given(st.integers(0, 100_000))
def test_strength_0_changes_nothing(age: int) -> None:
    assert decay_factor(age, Decay(30, 0)) == 1.0


@given(st.floats(1, 1000), st.floats(0, 1))
def test_evergreen_is_exactly_1(half_life: float, strength: float) -> None:
    assert decay_factor(None, Decay(half_life, strength)) == 1.0


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.floats(1, 1000), st.floats(0, 1))
def test_older_is_never_worth_more(one: int, two: int, half_life: float, strength: float) -> None:
    decay = Decay(half_life, strength)
    assert decay_factor(max(one, two), decay) <= decay_factor(min(one, two), decay) <= 1.0


def test_age_is_counted_in_days() -> None:
    assert age_in_days(TODAY - timedelta(days=12), TODAY, evergreen=False) == 12
    assert age_in_days(TODAY, TODAY, evergreen=False) == 0


def test_future_counts_as_today() -> None:
    assert age_in_days(TODAY + timedelta(days=400), TODAY, evergreen=False) == 0


def test_evergreen_and_undated_have_no_age() -> None:
    assert age_in_days(TODAY, TODAY, evergreen=True) is None
    assert age_in_days(None, TODAY, evergreen=False) is None
