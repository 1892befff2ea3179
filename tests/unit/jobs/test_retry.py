"""What a failure means."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoryd.jobs.retry import backoff, unforeseen


def test_waits_double() -> None:
    assert [backoff(attempts) for attempts in (1, 2, 3, 4)] == [2.0, 4.0, 8.0, 16.0]


@given(st.integers())
def test_wait_is_never_short_nor_endless(attempts: int) -> None:
    assert 2.0 <= backoff(attempts) <= 900.0


@given(st.integers(1, 100))
def test_wait_never_shrinks(attempts: int) -> None:
    assert backoff(attempts) <= backoff(attempts + 1)


def test_wait_can_be_capped_lower() -> None:
    assert backoff(50, most=30.0) == 30.0


def test_unforeseen_error_keeps_its_cause_and_is_not_tried_again() -> None:
    cause = ZeroDivisionError("secret")
    error = unforeseen(cause)
    assert error.__cause__ is cause
    assert error.code == "internal"
    assert not error.retryable
    assert "ZeroDivisionError" in error.message
    assert "secret" not in error.message
