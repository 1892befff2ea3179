"""The vectors of the last queries."""

from __future__ import annotations

import numpy as np
import pytest

from memoryd.jobs.query_vectors import QueryVectors


def vector(value: float) -> np.ndarray:
    return np.full(4, value, np.float32)


def test_query_is_known_by_its_text_and_its_generation() -> None:
    queries = QueryVectors()
    queries.keep("one", "tea", vector(1))
    assert np.array_equal(queries.find("one", "tea"), vector(1))  # type: ignore[arg-type]
    assert queries.find("one", "Tea") is None
    assert queries.find("other", "tea") is None


def test_least_recently_asked_is_forgotten_first() -> None:
    queries = QueryVectors(2)
    queries.keep("g", "a", vector(1))
    queries.keep("g", "b", vector(2))
    queries.find("g", "a")
    queries.keep("g", "c", vector(3))
    assert [text for text in "abc" if queries.find("g", text) is not None] == ["a", "c"]
    assert len(queries) == 2


def test_what_keeps_nothing_knows_nothing() -> None:
    queries = QueryVectors(0)
    queries.keep("g", "a", vector(1))
    assert queries.find("g", "a") is None


def test_kept_vector_is_a_copy_that_nobody_changes() -> None:
    queries, batch = QueryVectors(), np.ones((8, 4), np.float32)
    queries.keep("g", "lone \ud800 surrogate", batch[0])
    batch[:] = 7
    found = queries.find("g", "lone \ud800 surrogate")
    assert found is not None
    assert np.array_equal(found, vector(1))
    assert found.base is None  # the rest of the batch can go
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 2
