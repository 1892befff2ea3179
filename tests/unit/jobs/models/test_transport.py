"""Addresses, waiting and the retry budget."""

from __future__ import annotations

import pytest

from memoryd.jobs.models.transport import (
    ATTEMPTS,
    LONGEST_WAIT,
    TransientError,
    parse_address,
    parse_retry_after,
    with_retries,
)
from memoryd.store.errors import DownloadFailed


def test_credentials_are_taken_out_of_the_address() -> None:
    address = parse_address("https://ana:p%40ss@host.example:8443/a/b?sig=x#frag")
    assert address.url == "https://host.example:8443/a/b?sig=x"
    assert address.auth == ("ana", "p@ss")
    assert address.shown == "https://host.example:8443/a/b"
    assert parse_address("https://host.example/a").auth is None


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("12", 12.0),
        ("soon", None),
        ("Sun, 15 Nov 2026 12:00:30 GMT", 30.0),
        ("Sun, 15 Nov 2026 11:00:00 GMT", 0.0),
    ],
)
def test_both_forms_of_retry_after_are_understood(header: str | None, seconds: float | None) -> None:
    noon = 1794744000.0
    assert parse_retry_after(header, noon) == seconds


def test_waits_grow_and_are_capped() -> None:
    waits: list[float] = []
    problems = [TransientError("x"), TransientError("x", wait=9999.0), TransientError("x"), TransientError("x")]

    def act() -> str:
        if problems:
            raise problems.pop(0)
        return "done"

    assert with_retries(act, lambda: 0, waits.append) == "done"
    assert waits == [0.5, LONGEST_WAIT, 2.0, 4.0]


def test_budget_ends_without_progress_and_not_with_it() -> None:
    reached = 0

    def act() -> None:
        nonlocal reached
        reached = min(reached + 1, 20)
        raise TransientError("broke off")

    with pytest.raises(DownloadFailed, match="broke off"):
        with_retries(act, lambda: reached, lambda seconds: None)
    assert reached == 20
    assert ATTEMPTS > 1
