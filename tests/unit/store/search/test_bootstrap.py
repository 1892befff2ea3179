"""The bootstrap: an interval that holds what it should, the same each time, and a verdict that is not easily given."""

from __future__ import annotations

import math

import numpy as np
import pytest

from memoryd.store.search.bootstrap import FEWEST_CHANGED, judge, mean_intervals


def test_interval_of_a_share_is_close_to_the_one_from_the_textbook() -> None:
    answers = np.array([[1.0]] * 300 + [[0.0]] * 100)
    ((low, high),) = mean_intervals(answers)
    half = 1.96 * math.sqrt(0.75 * 0.25 / 400)
    assert low == pytest.approx(0.75 - half, abs=0.005)
    assert high == pytest.approx(0.75 + half, abs=0.005)


def test_same_numbers_give_the_same_interval() -> None:
    table = np.random.default_rng(1).random((50, 3))
    assert np.array_equal(mean_intervals(table), mean_intervals(table))


def test_each_column_has_its_own_interval_and_order_of_queries_matters_little() -> None:
    table = np.random.default_rng(1).random((200, 2)) * np.array([1, 5])
    intervals = mean_intervals(table)
    means = table.mean(axis=0)
    assert (intervals[:, 0] < means).all()
    assert (means < intervals[:, 1]).all()
    assert mean_intervals(table[::-1]) == pytest.approx(intervals, abs=0.01)


def test_no_queries_have_no_interval() -> None:
    assert mean_intervals(np.empty((0, 2))).tolist() == [[0, 0], [0, 0]]


def verdict(differences: list[float]) -> str:
    ((low, high),) = mean_intervals(np.array(differences)[:, None])
    return judge(differences, low, high)


def test_verdict_follows_the_sign_where_it_is_beyond_doubt() -> None:
    assert verdict([1.0] * 20 + [0.0] * 80) == "better"
    assert verdict([-1.0] * 20 + [0.0] * 80) == "worse"


def test_gains_and_losses_that_nearly_cancel_tell_nothing() -> None:
    assert verdict([1.0] * 12 + [-1.0] * 8 + [0.0] * 80) == "no difference that can be told"
    assert verdict([0.0] * 100) == "no difference that can be told"


def test_a_handful_of_queries_tells_nothing_even_if_all_of_them_gain() -> None:
    assert verdict([1.0] * (FEWEST_CHANGED - 1)) == "no difference that can be told"
    assert verdict([1.0] * FEWEST_CHANGED) == "better"
