"""Texts on their way into requests, vectors on their way back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.jobs.embedders.batches import fit_text, split_batches
from memoryd.jobs.embedders.budget import Budget
from memoryd.jobs.embedders.shortening import read_rows, shorten
from memoryd.jobs.tokens import estimate_tokens
from tests.support.clock import SetClock


@given(st.text(), st.integers(8, 100))
def test_text_is_made_fit_to_be_sent(text: str, most: int) -> None:
    fitted = fit_text(text, most)
    assert fitted.strip()
    assert len(fitted.encode("utf-8")) <= most
    assert "\0" not in fitted


@given(st.lists(st.text(max_size=60), max_size=40), st.integers(1, 9), st.integers(1, 60), st.integers(1, 200))
def test_batches_hold_every_text_once_and_keep_to_the_limits(
    texts: list[str], most: int, most_tokens: int, most_bytes: int
) -> None:
    batches = list(split_batches(texts, most, most_tokens, most_bytes))
    assert [place for batch in batches for place in batch] == list(range(len(texts)))
    for batch in batches:
        assert 1 <= len(batch) <= most
        if len(batch) > 1:
            assert sum(estimate_tokens(texts[place]) for place in batch) <= most_tokens
            assert sum(len(texts[place].encode()) for place in batch) <= most_bytes


def test_vectors_are_cut_and_of_length_one_again() -> None:
    vectors = np.array([[3.0, 4.0, 12.0]], np.float32)
    assert shorten(vectors, 2) == pytest.approx(np.array([[0.6, 0.8]]))
    assert shorten(vectors, 0) is shorten(vectors, 3) is vectors
    assert read_rows([[3, 4, 12]], 1, wanted=2, expected=0).dtype == np.float32


@pytest.mark.parametrize(
    ("rows", "wanted", "expected", "reason"),
    [
        ([[1.0]], 0, 0, "1 vectors for 2 texts"),
        ([[1.0], [1.0, 2.0]], 0, 0, "different lengths"),
        ([["a"], ["b"]], 0, 0, "not of numbers"),
        ([[None], [1.0]], 0, 0, "not of numbers"),
        ([{}, {}], 0, 0, "not of numbers"),
        ([[], []], 0, 0, "no vectors"),
        ([1.0, 2.0], 0, 0, "no vectors"),
        ([[0.0, 0.0], [1.0, 0.0]], 0, 0, "length 0"),
        ([[float("nan"), 0.0], [1.0, 0.0]], 0, 0, "not of numbers"),
        ([[float("inf"), 0.0], [1.0, 0.0]], 0, 0, "not of numbers"),
        ([[1.0, 0.0], [1.0, 0.0]], 3, 0, "vectors of 2 numbers where 3 were expected"),
        ([[1.0, 0.0], [1.0, 0.0]], 0, 3, "vectors of 2 numbers where 3 were expected"),
    ],
)
def test_rows_that_are_no_vectors_are_refused(rows: list[object], wanted: int, expected: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_rows(rows, 2, wanted, expected)


def test_tokens_are_counted_where_nothing_can_be_written_down(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    clock = SetClock(1_800_000_000.0)
    budget = Budget(100, tmp_path / "file" / "tokens.json", clock)
    budget.spend(60)
    assert budget.used() == 60
    assert budget.allows(30, query=False)
    assert not budget.allows(31, query=False)
    assert budget.allows(40, query=True)
    clock.now = budget.renewed_at()
    assert budget.used() == 0


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"day": 1, "tokens": "many"}', "\xff"])
def test_record_that_cannot_be_read_is_begun_anew(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokens.json"
    file.write_text(text, encoding="latin-1")
    budget = Budget(100, file, SetClock())
    assert budget.used() == 0
    budget.spend(5)
    assert Budget(100, file, SetClock()).used() == 5


def test_without_a_limit_nothing_is_written(tmp_path: Path) -> None:
    budget = Budget(0, tmp_path / "tokens.json", SetClock())
    budget.spend(10**9)
    assert budget.allows(10**9, query=False)
    assert list(tmp_path.iterdir()) == []
