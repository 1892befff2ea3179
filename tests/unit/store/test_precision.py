from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from memoryd.store.precision import are_sound, enlarge, restore, scales, shrink
from memoryd.store.protocols import Vectors

ROWS = hnp.arrays(np.float32, (3, 24), elements=st.floats(-1, 1, width=32)).filter(
    lambda rows: bool((np.linalg.norm(rows, axis=1) > 0.1).all())
)


@given(ROWS)
def test_what_was_shrunk_is_sound_and_shrinks_to_the_same_again(rows: Vectors) -> None:
    small = shrink(rows)
    assert are_sound(small).all()
    assert np.array_equal(shrink(enlarge(small)), small)
    assert np.allclose(np.linalg.norm(enlarge(small), axis=1), 1, atol=1e-6)


@given(ROWS)
def test_no_number_is_off_by_more_than_half_a_step(rows: Vectors) -> None:
    steps = scales(rows)[:, None]
    assert (np.abs(shrink(rows) * steps - rows) <= steps * 0.5001).all()


@given(ROWS)
def test_vector_shrinks_alone_as_it_does_among_others(rows: Vectors) -> None:
    assert np.array_equal(np.concatenate([shrink(row[None]) for row in rows]), shrink(rows))


def test_what_was_never_written_is_not_sound() -> None:
    assert are_sound(np.array([[127, 0], [0, -127], [126, 3], [0, 0], [-128, 127]], np.int8)).tolist() == [
        True,
        True,
        False,
        False,
        False,
    ]
    rows = np.array([[1, 0], [0.6, 0.8], [0.6, 0.7], [np.nan, 1], [0, 0]], np.float32)
    assert are_sound(rows).tolist() == [True, True, False, False, False]


def test_nothing_is_kept_of_no_vectors() -> None:
    none = np.empty((0, 4), np.float32)
    assert shrink(none).shape == enlarge(shrink(none)).shape == restore(shrink(none)).shape == (0, 4)
    assert are_sound(none).shape == are_sound(shrink(none)).shape == (0,)


def test_vector_of_nothing_survives() -> None:
    assert enlarge(shrink(np.zeros((1, 4), np.float32))).tolist() == [[0, 0, 0, 0]]


def test_numbers_too_small_to_have_steps_are_nothing() -> None:
    """The least that float32 knows: a step of 127 to it cannot be told from zero, by which nothing can be divided."""
    assert shrink(np.array([[1e-45, 0], [0, 0]], np.float32)).tolist() == [[0, 0], [0, 0]]
